#include "replay/purse.h"
#include "client/fold.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

void purse_init(struct purse *purse, const struct catalogue *catalogue, double budget_seconds)
{
    *purse = (struct purse){
        .catalogue = catalogue,
        .budget_seconds = budget_seconds,
        .seen = xcalloc((size_t)catalogue_space(catalogue)->head.candidates, sizeof(*purse->seen)),
    };
}

void purse_release(struct purse *purse)
{
    free(purse->seen);
    purse->seen = NULL;
}

bool purse_empty(const struct purse *purse)
{
    return purse->outcome.device_seconds >= purse->budget_seconds ||
           purse->outcome.considered == catalogue_space(purse->catalogue)->head.candidates;
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

double purse_measure(struct purse *purse, size_t candidate)
{
    const struct space_candidate *c = &catalogue_space(purse->catalogue)->candidate[candidate];
    struct player_outcome *o = &purse->outcome;
    double log2 = space_log2(c);

    if (purse->seen[candidate]) {
        return log2;
    }
    purse->seen[candidate] = true;
    o->considered++;
    o->compile_seconds += c->compiled != NULL ? fmax(c->compiled->seconds, 0) : 0;
    if (c->result != NULL) {
        o->measured++;
        o->device_seconds += fold_held_seconds(c->result);
    }
    o->seconds = o->device_seconds;
    if (log2 > o->best_log2) {
        o->improvers++;
        note_best(o, log2);
    }
    return log2;
}
