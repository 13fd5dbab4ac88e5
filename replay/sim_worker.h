// A worker in simulated time: the static engine's model (worker/group.h), which learns from the outcomes
// of one search alone.
#ifndef REPLAY_SIM_WORKER_H
#define REPLAY_SIM_WORKER_H

#include "client/pool/forecaster.h"
#include "replay/sim.h"
#include <stdbool.h>
#include <stdint.h>

struct sim_worker;

#define SIM_WORKER_FORECAST_S 0.01 // of a batch; as measured of kcast-worker (docs/measuring.md)
#define SIM_WORKER_OBSERVE_S 0.05

// model false: one that never makes a forecast.
struct sim_worker *sim_worker_create(struct sim *sim, bool model);
void sim_worker_free(struct sim_worker *sim_worker); // its callbacks do not run; NULL is fine

// As forecaster_ask, forecaster_tell and forecaster_busy (client/pool/forecaster.h).
void sim_worker_ask(struct sim_worker *sim_worker, const struct run_state *run_state,
                    uint64_t first, uint64_t last, uint64_t visible, forecaster_callback *callback,
                    void *owner);
void sim_worker_tell(struct sim_worker *sim_worker, const struct run_state *run_state,
                     uint64_t after, uint64_t last, forecaster_told *callback, void *owner);
bool sim_worker_busy(const struct sim_worker *sim_worker);
// The sentence of the last failure; NULL when there was none.
const char *sim_worker_failure(const struct sim_worker *sim_worker);

#endif
