// The search's talk with the worker: asks for forecasts of a batch, tells outcomes. A worker that
// is not there or fails is said once on stderr and left alone for a while; its candidates are
// measured instead. Decides nothing, records nothing.
#ifndef CLIENT_POOL_FORECASTER_H
#define CLIENT_POOL_FORECASTER_H

#include "client/pool/forecast_request.h"
#include "client/run/run_state.h"
#include "client/search/search_text.h"
#include "client/session.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

struct forecaster;

// Never fails: without a worker every answer is "none". notice gets the sentences about that; NULL:
// nobody does.
struct forecaster *forecaster_create(struct session *session,
                                     void (*notice)(void *owner, const char *sentence),
                                     void *owner);
void forecaster_free(
    struct forecaster *forecaster); // outstanding answers do not come any more; NULL is fine

// Where the run's blobs are read; without it language models have nothing to read.
void forecaster_set_reader(struct forecaster *forecaster, search_text_reader *read, void *owner);

// The worker's name for itself, NULL without one.
const char *forecaster_engine(const struct forecaster *forecaster);
bool forecaster_busy(const struct forecaster *forecaster);

// forecasts: one per candidate in any order, found by id; the callee may take them. NULL when there
// are none; reason says why then.
typedef void forecaster_callback(void *owner, struct forecast_reply *forecasts, const char *reason);
// Asks about those of candidates first … last for which forecast_wants (client/pool/forecast_request.h), with what came of candidates
// 1 … visible. The callback runs later, exactly once, unless the forecaster is freed before. Not while
// busy.
void forecaster_ask(struct forecaster *forecaster, const struct run_state *run_state,
                    uint64_t first, uint64_t last, uint64_t visible, forecaster_callback *callback,
                    void *owner);
// Tells the outcomes of candidates after … last, in messages of bounded size. rows: what the worker
// knows afterwards. ok: false when it could not be told. The callback runs later, exactly once. Not
// while busy.
typedef void forecaster_told(void *owner, bool ok, uint64_t rows);
void forecaster_tell(struct forecaster *forecaster, const struct run_state *run_state,
                     uint64_t after, uint64_t last, forecaster_told *callback, void *owner);

#endif
