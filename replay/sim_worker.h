// A worker in simulated time. It makes forecasts with the static engine's model
// (worker/model/group.h), which learns from the outcomes of one search alone, or knows the recorded
// space (replay/perfect_forecaster.h). It takes a fixed simulated time for each call, and keeps
// what it was asked about (replay/looks.h). replay/sim_search.c is the only caller.
#ifndef REPLAY_SIM_WORKER_H
#define REPLAY_SIM_WORKER_H

#include "client/forecast/forecast_service.h"
#include "replay/looks.h"
#include "replay/recorded_space.h"
#include "replay/sim.h"
#include <stdbool.h>
#include <stdint.h>

struct sim_worker;

enum sim_forecaster {
    SIM_FORECASTER_NONE,    // nobody: there is never a forecast
    SIM_FORECASTER_STATIC,  // the static engine's model
    SIM_FORECASTER_PERFECT, // one that knows the recorded space
};
// Returns its name: "none", "static" or "perfect".
const char *sim_forecaster_name(enum sim_forecaster forecaster);

// Seconds of a call, as measured with kcast-worker (docs/measuring.md).
#define SIM_WORKER_FORECAST_S 0.01 // forecasts of a batch
#define SIM_WORKER_OBSERVE_S 0.05  // observing outcomes

// sim and recorded are borrowed.
struct sim_worker *sim_worker_create(struct sim *sim, enum sim_forecaster forecaster,
                                     const struct recorded_space *recorded);
void sim_worker_free(struct sim_worker *sim_worker); // its callbacks do not run; NULL is fine

// Returns what the search asks and tells; it belongs to the simulated worker.
struct forecast_service *sim_worker_service(struct sim_worker *sim_worker);
// Returns the candidates that it was asked about; they belong to the simulated worker.
const struct looks *sim_worker_looks(const struct sim_worker *sim_worker);
// Returns the sentence of the last failure of the model; NULL when there was none.
const char *sim_worker_failure(const struct sim_worker *sim_worker);

#endif
