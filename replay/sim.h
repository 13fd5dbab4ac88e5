// Simulated time: a queue of future events. Events that are due at the same time run in the order
// in which they were scheduled, so a simulation is deterministic. The other modules of replay/
// schedule events here; this one does not know what they mean.
#ifndef REPLAY_SIM_H
#define REPLAY_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct sim;

struct sim *sim_create(void);
void sim_free(struct sim *sim); // events that have not run are forgotten; NULL is fine

// Returns the simulated seconds since the beginning.
double sim_now(const struct sim *sim);
// Makes sim_step call run(owner, tag) so many seconds (at least 0) from now.
void sim_after(struct sim *sim, double seconds, void (*run)(void *owner, uint64_t tag), void *owner,
               uint64_t tag);
// Moves the time to the next event and runs it. Returns false when there is none.
bool sim_step(struct sim *sim);

#endif
