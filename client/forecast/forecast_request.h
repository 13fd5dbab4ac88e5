// Builds the messages by which a worker is asked about a run's candidates and told their outcomes.
// Called by the forecaster and by the simulated worker. Pure: it knows no connections.
#ifndef CLIENT_FORECAST_FORECAST_REQUEST_H
#define CLIENT_FORECAST_FORECAST_REQUEST_H

#include "client/run/run_state.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

// Whether the candidate needs a forecast: it compiled, is no duplicate, and has no forecast yet.
bool forecast_wants(const struct run_state *run_state, uint64_t candidate);

// Fills a request about those of candidates first … last for which forecast_wants is true, without
// their sources. The incumbent is the one among candidates 1 … visible. Only the array of
// candidates belongs to the request; everything else is borrowed from the run state.
void forecast_questions(const struct run_state *run_state, uint64_t first, uint64_t last,
                        uint64_t visible, struct forecast_request *ret);
// The same about these candidates, which compiled, whether they have forecasts or not.
void forecast_questions_again(const struct run_state *run_state, const uint64_t *candidate,
                              size_t count, uint64_t visible, struct forecast_request *ret);
// The same about candidates that are not compiled yet. facts stay the caller's; nothing of the
// request is to be freed.
void forecast_screening(const struct run_state *run_state, struct candidate_facts *facts,
                        size_t count, uint64_t visible, struct forecast_request *ret);
void forecast_questions_free(struct forecast_request *request);

// Whether the candidate has an outcome to tell: it was measured, and not unsealed, or it did not
// compile.
bool forecast_teaches(const struct run_state_candidate *candidate);
// Fills a message with at most max outcomes of candidates *next … last, and sets *next to the first
// candidate that it did not look at. Strings are borrowed from the run state until
// forecast_outcomes_free.
void forecast_outcomes(const struct run_state *run_state, uint64_t *next, uint64_t last, size_t max,
                       struct observe *ret);
void forecast_outcomes_free(struct observe *observe);

#endif
