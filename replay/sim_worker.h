// A worker in simulated time: the static engine's model (worker/group.h), which learns from the outcomes
// of one search alone.
#ifndef REPLAY_SIM_WORKER_H
#define REPLAY_SIM_WORKER_H

#include "client/forecast/forecast_service.h"
#include "replay/sim.h"
#include <stdbool.h>
#include <stdint.h>

struct sim_worker;

#define SIM_WORKER_FORECAST_S 0.01 // of a batch; as measured of kcast-worker (docs/measuring.md)
#define SIM_WORKER_OBSERVE_S 0.05

// model false: one that never makes a forecast.
struct sim_worker *sim_worker_create(struct sim *sim, bool model);
void sim_worker_free(struct sim_worker *sim_worker); // its callbacks do not run; NULL is fine

// It is asked and told by this, which stays the simulated worker's.
struct forecast_service *sim_worker_service(struct sim_worker *sim_worker);
// The sentence of the last failure; NULL when there was none.
const char *sim_worker_failure(const struct sim_worker *sim_worker);

#endif
