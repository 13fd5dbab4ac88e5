// Who compiles and measures for a search: an operations table that a search calls without knowing
// whether there are daemons (client/pool/daemon_pool.h) or a simulated one (replay/sim_daemon.h)
// behind it. Implementations embed struct job_service and find themselves from its address.
#ifndef CLIENT_POOL_JOB_SERVICE_H
#define CLIENT_POOL_JOB_SERVICE_H

#include "common/err.h"
#include "proto/messages.h"
#include <stddef.h>
#include <stdint.h>

// A job and the daemon that has it.
struct job_ref {
    size_t member; // index of the daemon; 0 where there is only one
    uint64_t job;  // number of the job at that daemon; 0: no job
};

// Called once when a job is over, never from inside submit. Without an error, info is the daemon's
// answer as described at job_client_callback (client/pool/job_client.h), and ref names the job.
// With an error the job could not be submitted: info is NULL and ref names no job.
typedef void job_service_callback(void *owner, uint64_t tag, struct job_ref ref,
                                  struct job_info *info, const struct err *error);

struct job_service {
    // Submits a job. The same key with the same spec is the same job. spec is copied. Jobs with a
    // lower priority go first. owner and tag are handed to the callback.
    void (*submit)(struct job_service *service, const char *key, const struct job_spec *spec,
                   uint64_t priority, job_service_callback *callback, void *owner, uint64_t tag);
    // Drops the job with this key, whose outcome nobody wants any more: its callback does not run,
    // and its daemon cancels it. Does nothing where no such job is outstanding. Who wants the job
    // after all, in a later session, submits it again by the same key.
    void (*cancel)(struct job_service *service, const char *key);
    // Says that the job's answer has been recorded, so that its daemon may forget the job.
    void (*ack)(struct job_service *service, struct job_ref ref);
    // The url of the daemon that has the job, owned by the service; NULL with a single daemon.
    const char *(*where)(const struct job_service *service, struct job_ref ref);
};

#endif
