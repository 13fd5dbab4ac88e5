// Getting one job compiled: its measurement setup's reference and baseline, and its candidate, all at the
// same time. Ends once, with what is to become of the job.
#ifndef DAEMON_JOBS_PREPARATION_H
#define DAEMON_JOBS_PREPARATION_H

#include "daemon/jobs/job.h"
#include "daemon/run/compiler.h"
#include "daemon/run/setup.h"

enum prepared {
    PREPARED,          // MEASURE: everything is compiled; job->object is set
    PREPARED_COMPILED, // COMPILE: *compiled is the answer, whatever its verdict
    PREPARED_REFUSED,  // MEASURE: the candidate does not compile; *compiled says why
    PREPARED_DEFECT,   // the problem, its reference or its baseline is at fault: reason
    PREPARED_LOST,     // the jail failed, a blob has gone, or no device runs such problems: reason
};

struct preparation_end {
    enum prepared outcome;
    const struct compiled *compiled;
    const char *reason;
    double seconds;              // of compiling, spent for this job
    struct queue_ticket *ticket; // as given to preparation_start; to be settled
};

struct preparation_config {
    struct compiler *compiler;
    void (*on_miss)(void *owner, struct job *job); // something has to be compiled; once
    // The preparation is freed afterwards and job->preparation is NULL already.
    void (*on_end)(void *owner, struct job *job, const struct preparation_end *end);
    void *owner;
};

// Sets job->preparation, and job->device_class when the problem has been read. Callbacks run later,
// except that a job that is known to be impossible ends at once.
void preparation_start(const struct preparation_config *config, struct job *job,
                       const struct queue_ticket *ticket);
// Without callbacks. Returns the ticket that was given to preparation_start.
struct queue_ticket preparation_cancel(struct job *job);

#endif
