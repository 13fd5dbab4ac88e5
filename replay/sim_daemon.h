// A daemon in simulated time. It compiles and measures candidates by looking up the recorded
// results, and it takes as long as the recorded compilation or measurement took. Several searches
// share its devices: the next measurement is the most urgent, then oldest one of the search that
// has used the least device time. replay/sim_search.c and replay/tasks.c are the callers.
#ifndef REPLAY_SIM_DAEMON_H
#define REPLAY_SIM_DAEMON_H

#include "client/pool/job_service.h"
#include "replay/recorded_space.h"
#include "replay/sim.h"
#include <stddef.h>

struct sim_daemon;
struct sim_daemon_search; // the jobs of one search

struct sim_daemon_config {
    unsigned devices;       // at least 1
    unsigned compile_slots; // compilations at the same time; at least 1
};

// sim is borrowed.
struct sim_daemon *sim_daemon_create(struct sim *sim, const struct sim_daemon_config *config);
// Its searches must have been freed before. NULL is fine.
void sim_daemon_free(struct sim_daemon *sim_daemon);

struct sim_daemon_search *sim_daemon_search_create(struct sim_daemon *sim_daemon,
                                                   const struct recorded_space *recorded);
// The callbacks of its open jobs do not run. NULL is fine.
void sim_daemon_search_free(struct sim_daemon_search *search);
// Returns what the search submits its jobs to; it belongs to the search. A job whose
// spec names no candidate of the recorded space is buried. What is cancelled while it runs makes
// room at once; the device seconds that it was to take count as used.
struct job_service *sim_daemon_search_jobs(struct sim_daemon_search *search);

#endif
