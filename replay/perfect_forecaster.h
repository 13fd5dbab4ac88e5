// A forecaster that knows a recorded space: its forecasts of compiling, correctness and speed come
// true. A search that goes by it shows how much the policy and the pipeline leave to better
// forecasts. replay/sim_worker.c is the only caller. Pure: the same request gets the same answer.
#ifndef REPLAY_PERFECT_FORECASTER_H
#define REPLAY_PERFECT_FORECASTER_H

#include "proto/messages.h"
#include "replay/recorded_space.h"

// Answers a request, with one forecast per candidate in their order. A candidate compiles and is
// correct with probability 1 or 0, as it was recorded; the distribution of its speedup lies in one
// bin; p_improves, expected_improvement and p_beyond are those of its recorded log2 speedup
// (space_log2); its call is right with confidence 1. A candidate that the space does not have gets
// a forecast with a reason and no numbers, which policies do not use. The caller clears *ret.
void perfect_forecast(const struct recorded_space *recorded, const struct forecast_request *request,
                      struct forecast_reply *ret);

#endif
