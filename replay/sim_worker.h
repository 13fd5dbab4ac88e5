// A worker in simulated time. It makes forecasts with the static engine's model (worker/group.h),
// which learns from the outcomes of one search alone, and it takes a fixed simulated time for each
// call. replay/sim_search.c is the only caller.
#ifndef REPLAY_SIM_WORKER_H
#define REPLAY_SIM_WORKER_H

#include "client/pool/forecaster.h"
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

// These three do what forecaster_ask, forecaster_tell and forecaster_busy do
// (client/pool/forecaster.h), in simulated time.
void sim_worker_ask(struct sim_worker *sim_worker, const struct run_state *run_state,
                    uint64_t first, uint64_t last, uint64_t visible, forecaster_callback *callback,
                    void *owner);
void sim_worker_tell(struct sim_worker *sim_worker, const struct run_state *run_state,
                     uint64_t after, uint64_t last, forecaster_told *callback, void *owner);
bool sim_worker_busy(const struct sim_worker *sim_worker);
// Returns the sentence of the last failure of the model; NULL when there was none.
const char *sim_worker_failure(const struct sim_worker *sim_worker);

#endif
