// The search's talk with the worker: asks for forecasts of a batch, tells outcomes. That a worker is
// not there or fails is said once, and candidates are measured instead until it has been found
// (client/forecast/worker_link.h). Decides nothing, records nothing.
#ifndef CLIENT_FORECAST_FORECASTER_H
#define CLIENT_FORECAST_FORECASTER_H

#include "client/forecast/forecast_service.h"
#include "client/forecast/search_text.h"
#include "client/session.h"
#include "common/err.h"

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

// The engine of the worker, as it said last; NULL: it was never there. Valid until the loop runs.
const char *forecaster_engine(const struct forecaster *forecaster);
// Forecasts are asked for and outcomes told by this, outcomes in messages of bounded size. It stays the
// forecaster's.
struct forecast_service *forecaster_service(struct forecaster *forecaster);

#endif
