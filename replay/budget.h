// What a search measures that is not one of ours: candidates of a space, one after another, each charged
// the device time that its measurement was charged when the space was recorded. A candidate that is
// measured again costs nothing, nor does one that does not compile. There are no second measurements:
// what counts is space_log2 (client/space/space.h), and the best is the best, however little better.
#ifndef REPLAY_BUDGET_H
#define REPLAY_BUDGET_H

#include "replay/catalogue.h"
#include "replay/player.h"
#include <stdbool.h>
#include <stddef.h>

struct budget {
    const struct catalogue *catalogue;
    double budget_seconds;         // NaN: no limit
    bool *seen;                    // [candidates] measured, or found not to compile
    struct player_outcome outcome; // so far
};

void budget_init(struct budget *budget, const struct catalogue *catalogue, double budget_seconds);
void budget_release(struct budget *budget);

// The budget is used, to the last measurement, which may go beyond it; or everything is measured.
bool budget_empty(const struct budget *budget);
// Measures candidate number `candidate`, counted from 0. Returns its log2 speedup; NaN for one that does
// not compile or is not correct.
double budget_measure(struct budget *budget, size_t candidate);

#endif
