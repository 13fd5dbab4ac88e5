// New limits for a search that has ended, or that was interrupted: what `kcast resume --budget` and
// its like make of a run. Pure functions of a run's state.
#ifndef CLIENT_RUN_RUN_EXTEND_H
#define CLIENT_RUN_RUN_EXTEND_H

#include "client/run/run_state.h"
#include "common/err.h"

// The limits that a user gives, each for the whole search; 0: as it was.
struct run_limits {
    double budget_seconds; // device time
    uint64_t measurements;
    uint64_t candidates;
    double wall_seconds;
    double target; // speedup over the baseline; 0: as it was, unless the run has reached that
};

// Fills in the event that gives the run these limits. ERR_USAGE when one of them is used up
// already.
MUST_CHECK int run_extend(struct run_extended *ret, const struct run_state *run_state,
                          const struct run_limits *limits, struct err *err);
// What the event changes in the state: the limits, and that the search goes on.
void run_state_extend(struct run_state *run_state, const struct run_extended *event);

#endif
