// A daemon in simulated time: compiles and measures candidates of spaces by looking up what came of
// them, and takes as long as that took. Several searches share its devices: the next measurement is of
// the search that has used least device time, its most urgent and oldest one.
#ifndef REPLAY_SIM_DAEMON_H
#define REPLAY_SIM_DAEMON_H

#include "client/pool/job_client.h"
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
// As job_client_submit (client/pool/job_client.h). The spec's candidate names a candidate of the catalogue, else the job is
// buried.
void sim_daemon_submit(struct sim_daemon_search *search, const struct job_spec *spec,
                       uint64_t priority, job_client_callback *callback, void *owner, uint64_t tag);

#endif
