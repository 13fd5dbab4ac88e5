// What a worker is asked and told about a run's candidates, as messages. Pure.
#ifndef CLIENT_FORECAST_FORECAST_REQUEST_H
#define CLIENT_FORECAST_FORECAST_REQUEST_H

#include "client/run/run_state.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

// Compiled, not a duplicate, and not forecast yet.
bool forecast_wants(const struct run_state *run_state, uint64_t candidate);

// Asks about those of candidates first … last that forecast_wants, with the incumbent among candidates
// 1 … visible, without sources. All but the array candidates is borrowed from the run state.
void forecast_questions(const struct run_state *run_state, uint64_t first, uint64_t last,
                        uint64_t visible, struct forecast_request *ret);
void forecast_questions_free(struct forecast_request *request);

// The outcomes, at most max, of candidates *next … last; *next is then the first that was not looked at.
// Borrowed from the run state until forecast_outcomes_free.
void forecast_outcomes(const struct run_state *run_state, uint64_t *next, uint64_t last, size_t max,
                       struct observe *ret);
void forecast_outcomes_free(struct observe *observe);

#endif
