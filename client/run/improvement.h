// What counts as an improvement in a search. One definition for forecasts, policies, reports and
// scores. Pure functions of the run state.
#ifndef CLIENT_RUN_IMPROVEMENT_H
#define CLIENT_RUN_IMPROVEMENT_H

#include "client/run/run_state.h"
#include "proto/verdict.h" // IMPROVEMENT_MARGIN_LOG2
#include <stdbool.h>
#include <stdint.h>

// Whether the candidate was measured, is correct and not barred, and is faster by the margin than
// the incumbent that the decision about it saw. This is the event whose probability a forecast's
// P(improves) is.
bool improvement_measured(const struct run_state_candidate *candidate);

// The log2 by which the candidate raised the incumbent when it became the incumbent; NaN when it
// never did.
double improvement_gain(const struct run_state *run_state, uint64_t candidate);

#endif
