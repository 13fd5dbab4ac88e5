// All daemons of --pool as one: what client/pool.h does with one daemon, over as many as there are.
// Each job goes to the daemon that has the least to do per device of the search's device class. A
// daemon that stays away, is drained or gives up loses its unfinished jobs to the others, under the
// same keys; the first outcome counts, and a later one is acknowledged and ignored. A single url
// that is no dns:// name, or --local, is one pool and behaves as such.
// Everything runs on the session's loop; callbacks never run inside fleet_submit.
#ifndef CLIENT_FLEET_H
#define CLIENT_FLEET_H

#include "client/pool.h"
#include "client/problem_dir.h"
#include "client/session.h"
#include "common/err.h"
#include "contract/problem.h"
#include "proto/all.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fleet;

struct fleet_times {   // in ms; 0: the default
    uint64_t poll;     // between two STATUS to a daemon: 2000
    uint64_t away;     // silence after which a daemon's jobs go to others: 15000
    uint64_t look_up;  // between two look-ups of dns:// names: 30000
    uint64_t patience; // with no daemon there at all, one or several: POOL_PATIENCE_MS
};

// Connects to every daemon of --pool and waits until each has answered or has failed to; fails when
// none answers. Asks each for the jobs of `search` that it knows: a job goes where it is known.
// times: NULL for the defaults.
MUST_CHECK int fleet_create(struct fleet **ret, struct session *session, const char *search,
                            const struct fleet_times *times, struct err *err);
// As pool_close. NULL is fine.
void fleet_close(struct fleet *fleet);

// Chooses the class of devices that all jobs are for: device_class, or, when that is NULL, that of
// the first device in service that runs the problem's language. *ret_device is such a device and
// the caller's (message_clear with device_info_message); *ret_sandbox its daemon's word for its
// sandbox, malloc'd (may be NULL). Daemons without such devices are left out, with a sentence. To
// be called once, before anything is submitted.
MUST_CHECK int fleet_choose(struct fleet *fleet, const char *device_class,
                            const struct problem *problem, struct device_info *ret_device,
                            char **ret_sandbox, struct err *err);
// The class that was chosen, when there are several daemons; else NULL (the daemon chooses).
const char *fleet_class(const struct fleet *fleet);

// As the functions of client/pool.h.
void fleet_add_blob(struct fleet *fleet, const void *data, size_t len, struct digest *ret);
void fleet_add_problem(struct fleet *fleet, const struct problem_dir *dir);
void fleet_set_blob_reader(struct fleet *fleet,
                           int (*read)(void *owner, const struct digest *digest, struct bytes *ret,
                                       struct err *err),
                           void *owner);
void fleet_set_notice(struct fleet *fleet, void (*notice)(void *owner, const char *sentence),
                      void *owner);
// To every daemon: a budget is of each.
void fleet_set_terms(struct fleet *fleet, const struct pool_terms *terms);
void fleet_submit(struct fleet *fleet, const char *key, const struct job_spec *spec,
                  uint64_t priority, pool_callback *callback, void *owner, uint64_t tag);
size_t fleet_outstanding(const struct fleet *fleet);
void fleet_cancel_all(struct fleet *fleet);
MUST_CHECK int fleet_run_once(struct fleet *fleet, struct err *err);
MUST_CHECK int fleet_drain(struct fleet *fleet, struct err *err);

// job is the number in the job_info that a callback was given: it also tells at which daemon.
void fleet_ack(struct fleet *fleet, uint64_t job);
// The url of that daemon, which stays the fleet's, when there are several; else NULL.
const char *fleet_where(const struct fleet *fleet, uint64_t job);
// The number that the job has at its daemon.
uint64_t fleet_number(uint64_t job);

#endif
