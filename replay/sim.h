// Simulated time: a queue of what is going to happen. Things due at the same time happen in the order
// in which they were announced.
#ifndef REPLAY_SIM_H
#define REPLAY_SIM_H

#include <stdbool.h>
#include <stdint.h>

struct sim;

struct sim *sim_create(void);
void sim_free(struct sim *sim); // what was due does not happen; NULL is fine

double sim_now(const struct sim *sim); // seconds since the beginning
// Calls run(owner, tag) so many seconds (>= 0) from now, by sim_step.
void sim_after(struct sim *sim, double seconds, void (*run)(void *owner, uint64_t tag), void *owner,
               uint64_t tag);
// Lets the next thing happen. False when nothing is due.
bool sim_step(struct sim *sim);

#endif
