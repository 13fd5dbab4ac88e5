#include "replay/budget.h"
#include "client/run/run_state.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

void budget_init(struct budget *budget, const struct catalogue *catalogue, double budget_seconds)
{
    *budget = (struct budget){
        .catalogue = catalogue,
        .budget_seconds = budget_seconds,
        .seen = xcalloc((size_t)catalogue_space(catalogue)->head.candidates, sizeof(*budget->seen)),
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
           budget->outcome.considered == catalogue_space(budget->catalogue)->head.candidates;
}

static void note_best(struct player_outcome *o, double log2)
{
    o->best_log2 = log2;
    o->records++;
    o->steps += o->steps < PLAYER_STEPS_MAX;
    o->step[o->steps - 1] = (struct player_step){.device_seconds = o->device_seconds,
                                                 .log2 = log2,
                                                 .considered = o->considered,
                                                 .measured = o->measured};
}

double budget_measure(struct budget *budget, size_t candidate)
{
    const struct space_candidate *c = &catalogue_space(budget->catalogue)->candidate[candidate];
    struct player_outcome *o = &budget->outcome;
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
