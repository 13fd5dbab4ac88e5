// A daemon in simulated time: compiles and measures candidates of spaces by looking up what came of
// them, and takes as long as that took. Several searches share its devices: the next measurement is of
// the search that has used least device time, its most urgent and oldest one.
#ifndef REPLAY_SIM_DAEMON_H
#define REPLAY_SIM_DAEMON_H

#include "client/pool/job_service.h"
#include "replay/catalogue.h"
#include "replay/sim.h"
#include <stddef.h>

struct sim_daemon;
struct sim_daemon_search; // one search's jobs

struct sim_daemon_config {
    unsigned devices;       // at least 1
    unsigned compile_slots; // at least 1
};

struct sim_daemon *sim_daemon_create(struct sim *sim, const struct sim_daemon_config *config);
void sim_daemon_free(struct sim_daemon *sim_daemon); // after its searches; NULL is fine

struct sim_daemon_search *sim_daemon_search_create(struct sim_daemon *sim_daemon,
                                                   const struct catalogue *catalogue);
void sim_daemon_search_free(
    struct sim_daemon_search *search); // its jobs' callbacks do not run; NULL is fine
// Its jobs are submitted by this, which stays the search's; keys do not matter. The spec's candidate names
// a candidate of the catalogue, else the job is buried.
struct job_service *sim_daemon_search_jobs(struct sim_daemon_search *search);

#endif
