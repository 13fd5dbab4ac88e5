// Asks the worker for forecasts of a batch and tells it outcomes. That the worker is away or fails
// is said once, and candidates are measured instead until it has been found again
// (client/forecast/worker_link.h). Created by the driver of a search and used by the pipeline
// through client/forecast/forecast_service.h. Decides nothing and records nothing.
#ifndef CLIENT_FORECAST_FORECASTER_H
#define CLIENT_FORECAST_FORECASTER_H

#include "client/forecast/forecast_service.h"
#include "client/forecast/search_text.h"
#include "client/session.h"
#include "common/err.h"

struct forecaster;

// Never fails: without a worker every question is answered with no forecasts. notice, which may be
// NULL, receives the sentences about a worker that is lost or found.
struct forecaster *forecaster_create(struct session *session,
                                     void (*notice)(void *owner, const char *sentence),
                                     void *owner);
// No callback runs any more. NULL is fine.
void forecaster_free(struct forecaster *forecaster);

// Sets how the run's blobs are read. Without it language models get no sources. owner outlives the
// forecaster.
void forecaster_set_reader(struct forecaster *forecaster, search_text_reader *read, void *owner);

// The engine that the worker named last; NULL when no worker was ever there. Valid until the loop
// runs.
const char *forecaster_engine(const struct forecaster *forecaster);
// The operations by which forecasts are asked for and outcomes told. Owned by the forecaster.
struct forecast_service *forecaster_service(struct forecaster *forecaster);

#endif
