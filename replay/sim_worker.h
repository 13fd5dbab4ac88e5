// A worker in simulated time. It makes forecasts with the static engine's model
// (worker/model/group.h), which learns from the outcomes of one search alone, and it takes a fixed
// simulated time for each call. replay/sim_search.c is the only caller.
#ifndef REPLAY_SIM_WORKER_H
#define REPLAY_SIM_WORKER_H

#include "client/forecast/forecast_service.h"
#include "replay/sim.h"
#include <stdbool.h>
#include <stdint.h>

struct sim_worker;

// Seconds of a call, as measured with kcast-worker (docs/measuring.md).
#define SIM_WORKER_FORECAST_S 0.01 // forecasts of a batch
#define SIM_WORKER_OBSERVE_S 0.05  // observing outcomes

// Without a model the worker never makes a forecast. sim is borrowed.
struct sim_worker *sim_worker_create(struct sim *sim, bool model);
void sim_worker_free(struct sim_worker *sim_worker); // its callbacks do not run; NULL is fine

// Returns what the search asks and tells; it belongs to the simulated worker.
struct forecast_service *sim_worker_service(struct sim_worker *sim_worker);
// Returns the sentence of the last failure of the model; NULL when there was none.
const char *sim_worker_failure(const struct sim_worker *sim_worker);

#endif
