// The measurements of a search that does without the pipeline. Candidates of a recorded space are
// measured one after another, each charged with the device time that its measurement was charged
// with when the space was recorded. A candidate that is measured again costs nothing, and neither
// does one that does not compile. No measurement is repeated: the speedup is space_log2
// (client/space/space.h), and a candidate becomes the incumbent however little better it is. The
// methods of replay/search_methods.h are the callers.
#ifndef REPLAY_BUDGET_H
#define REPLAY_BUDGET_H

#include "replay/recorded_space.h"
#include "replay/search_outcome.h"
#include <stdbool.h>
#include <stddef.h>

struct budget {
    const struct recorded_space *recorded;
    double budget_seconds;         // device time; NaN: no limit
    bool *seen;                    // [candidates] measured, or found not to compile
    struct search_outcome outcome; // what was found and used so far
};

// recorded is borrowed.
void budget_init(struct budget *budget, const struct recorded_space *recorded,
                 double budget_seconds);
void budget_release(struct budget *budget);

// Returns whether the budget is used up, by a last measurement that may go beyond it, or everything
// was measured.
bool budget_empty(const struct budget *budget);
// Measures a candidate, counted from 0. Returns its log2 speedup; NaN when it does not compile or
// is not correct.
double budget_measure(struct budget *budget, size_t candidate);

#endif
