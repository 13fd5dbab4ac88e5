#include "replay/budget.h"

#include "client/run/run_state.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

void budget_init(struct budget *budget, const struct recorded_space *recorded,
                 double budget_seconds)
{
    *budget = (struct budget){
        .recorded = recorded,
        .budget_seconds = budget_seconds,
        .seen =
            xcalloc((size_t)recorded_space_data(recorded)->head.candidates, sizeof(*budget->seen)),
    };
}

void budget_release(struct budget *budget)
{
    free(budget->seen);
    budget->seen = NULL;
}

bool budget_empty(const struct budget *budget)
{
    return budget->outcome.device_seconds >= budget->budget_seconds ||
           budget->outcome.considered == recorded_space_data(budget->recorded)->head.candidates;
}

static void note_best(struct search_outcome *o, double log2)
{
    o->best_log2 = log2;
    o->records++;
    search_outcome_add_step(o, &(struct search_step){.device_seconds = o->device_seconds,
                                                     .log2 = log2,
                                                     .considered = o->considered,
                                                     .measured = o->measured});
}

double budget_measure(struct budget *budget, size_t candidate)
{
    const struct space_candidate *c = &recorded_space_data(budget->recorded)->candidate[candidate];
    struct search_outcome *o = &budget->outcome;
    double log2 = space_log2(c);

    if (budget->seen[candidate]) {
        return log2;
    }
    budget->seen[candidate] = true;
    o->considered++;
    o->compile_seconds += c->compiled ? fmax(c->compiled->seconds, 0) : 0;
    if (c->result) {
        o->measured++;
        o->device_seconds += run_state_held_seconds(c->result);
    }
    o->seconds = o->device_seconds;
    if (log2 > o->best_log2) {
        o->improvers++;
        note_best(o, log2);
    }
    return log2;
}
