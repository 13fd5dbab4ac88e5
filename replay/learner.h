// A worker in simulated time: the static engine's model (worker/group.h), which learns from the outcomes
// of one search alone.
#ifndef REPLAY_LEARNER_H
#define REPLAY_LEARNER_H

#include "client/forecaster.h"
#include "replay/sim.h"
#include <stdbool.h>
#include <stdint.h>

struct learner;

#define LEARNER_FORECAST_S 0.01 // of a batch; as measured of kcast-worker (docs/measuring.md)
#define LEARNER_OBSERVE_S 0.05

// model false: one that never makes a forecast.
struct learner *learner_create(struct sim *sim, bool model);
void learner_free(struct learner *learner); // its callbacks do not run; NULL is fine

// As forecaster_ask, forecaster_tell and forecaster_busy (client/forecaster.h).
void learner_ask(struct learner *learner, const struct fold *fold, uint64_t first, uint64_t last,
                 uint64_t visible, forecaster_callback *callback, void *owner);
void learner_tell(struct learner *learner, const struct fold *fold, uint64_t after, uint64_t last,
                  forecaster_told *callback, void *owner);
bool learner_busy(const struct learner *learner);
// The sentence of the last failure; NULL when there was none.
const char *learner_failure(const struct learner *learner);

#endif
