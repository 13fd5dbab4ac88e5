#include "replay/search_outcome.h"

#include <math.h>
#include <stddef.h>

void search_outcome_add_step(struct search_outcome *outcome, const struct search_step *step)
{
    outcome->steps += outcome->steps < SEARCH_STEPS_MAX;
    outcome->step[outcome->steps - 1] = *step;
}

const struct search_step *search_outcome_step(const struct search_outcome *outcome, double log2)
{
    for (size_t i = 0; i < outcome->steps && log2 > 0; i++) {
        if (outcome->step[i].log2 >= log2) {
            return &outcome->step[i];
        }
    }
    return NULL;
}

double search_outcome_reached(const struct search_outcome *outcome, double log2)
{
    const struct search_step *step = search_outcome_step(outcome, log2);

    return step ? step->device_seconds : log2 <= 0 ? 0 : INFINITY;
}
