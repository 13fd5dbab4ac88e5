// One FORECAST under way: the forecasts of one request's candidates, which may be made in parts by
// several threads at once. All parts see the group as it was at the beginning, so that the reply
// does not depend on how it was divided or on what is learnt meanwhile. Called by the static engine
// and by group_forecast.
#ifndef WORKER_MODEL_FORECASTING_H
#define WORKER_MODEL_FORECASTING_H

#include "common/err.h"
#include "proto/messages.h"
#include <stddef.h>

struct group;
struct forecasting;

// Takes what the group knows now: its model, which stays as it is, and a copy of its decisions.
// Waits for no fit. Group and request are borrowed until forecasting_end. Any thread.
struct forecasting *forecasting_begin(struct group *group, const struct forecast_request *request);
// Makes the forecasts of candidates first … first + count - 1. Several threads may do this at once
// for candidates of their own. On failure the whole request has failed.
MUST_CHECK int forecasting_part(struct forecasting *forecasting, size_t first, size_t count,
                                struct err *err);
// Frees it, when every part has been made or none will be. ret, which is uninitialised before, gets
// one forecast per candidate in the request's order and is the caller's (message_clear with
// forecast_reply_message); NULL: what was made is thrown away.
void forecasting_end(struct forecasting *forecasting, struct forecast_reply *ret);

#endif
