// All daemons of --pool as one: what client/pool/job_client.h does with one daemon, with as many as
// there are. Each job goes to the daemon that has the least work per device of the search's device
// class. When a daemon stays away, is drained or gives up, its unfinished jobs go to the others
// under the same keys. The first outcome of a job counts; a later one is acknowledged and ignored.
// With --local or a single url, no dns:// name and no file, there is one daemon, and the pool only
// passes calls on. Used by searches and commands that submit jobs; it knows nothing of candidates.
// Everything runs on the session's loop, and callbacks never run inside submit.
#ifndef CLIENT_POOL_DAEMON_POOL_H
#define CLIENT_POOL_DAEMON_POOL_H

#include "client/pool/job_client.h"
#include "client/pool/job_service.h"
#include "client/session.h"
#include "common/err.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct daemon_pool;

struct daemon_pool_times { // in ms; 0: the default
    uint64_t poll;         // between two STATUS requests to a daemon: 2000
    uint64_t away;         // without an answer, after which a daemon's jobs go to others: 15000
    uint64_t look_up;      // between two look-ups of names and files: 5000
    uint64_t patience;     // without any daemon, until the pool gives up: JOB_CLIENT_PATIENCE_MS
    const struct clock *clock; // measures these; NULL: the system's clock
};

// Connects to every daemon of --pool and waits until each has answered or failed. Fails when none
// answers. Asks each daemon which jobs of the search it knows; such a job goes to the daemon that
// knows it. times is NULL for the defaults.
MUST_CHECK int daemon_pool_create(struct daemon_pool **ret, struct session *session,
                                  const char *search, const struct daemon_pool_times *times,
                                  struct err *err);
// See job_client_close. NULL is fine.
void daemon_pool_close(struct daemon_pool *daemon_pool);

// Chooses the class of devices that all jobs are for: device_class, or, when that is NULL, the
// class of the first device in service that runs the problem's language. *ret_device is such a
// device and the caller's (message_clear with device_info_message). ret_sandbox, which may be NULL,
// receives what its daemon says about its sandbox: malloc'd, or NULL when it says nothing. Daemons
// without such devices are left out, with a sentence. To be called once, before anything is
// submitted.
MUST_CHECK int daemon_pool_choose(struct daemon_pool *daemon_pool, const char *device_class,
                                  const struct problem *problem, struct device_info *ret_device,
                                  char **ret_sandbox, struct err *err);
// The class that was chosen, when there are several daemons; else NULL, since the daemon chooses.
const char *daemon_pool_class(const struct daemon_pool *daemon_pool);

// See the functions of the same names in client/pool/job_client.h. A notice of NULL prints the
// sentences on stderr again.
void daemon_pool_add_blob(struct daemon_pool *daemon_pool, const void *data, size_t len,
                          struct digest *ret);
void daemon_pool_set_blob_reader(struct daemon_pool *daemon_pool,
                                 int (*read)(void *owner, const struct digest *digest,
                                             struct bytes *ret, struct err *err),
                                 void *owner);
void daemon_pool_set_notice(struct daemon_pool *daemon_pool,
                            void (*notice)(void *owner, const char *sentence), void *owner);
// Sets the terms at every daemon. A budget is enforced by each daemon for itself.
void daemon_pool_set_terms(struct daemon_pool *daemon_pool, const struct job_client_terms *terms);
// The operations by which jobs are submitted and acknowledged. Owned by the pool.
struct job_service *daemon_pool_jobs(struct daemon_pool *daemon_pool);
size_t daemon_pool_outstanding(const struct daemon_pool *daemon_pool);
// Why none of the jobs goes on, as far as devices are the reason: "waiting: cpu0 is draining
// (reason)"; malloc'd. NULL when something goes on, when no measurement is unfinished, since
// compilations need no device, or when it is not known yet. Asks a single daemon for its status, so
// what it says is from the last question, of some two seconds ago.
char *daemon_pool_waiting(struct daemon_pool *daemon_pool);
void daemon_pool_cancel_all(struct daemon_pool *daemon_pool);
MUST_CHECK int daemon_pool_run_once(struct daemon_pool *daemon_pool, struct err *err);
MUST_CHECK int daemon_pool_drain(struct daemon_pool *daemon_pool, struct err *err);

#endif
