// Getting one job ready: its problem read, its candidate compiled, and where it is to be measured
// the problem's reference and baseline too, all at the same time. Ends once, with what is to become
// of the job.
#ifndef DAEMON_JOBS_PREPARATION_H
#define DAEMON_JOBS_PREPARATION_H

#include "daemon/state/job.h"
#include "daemon/state/parts.h"
#include "proto/messages.h"

enum prepared {
    PREPARED,        // *compiled says how the candidate was compiled, or why it cannot be
    PREPARED_DEFECT, // the problem, its reference or its baseline is at fault: reason
    PREPARED_LOST,   // the jail failed, a blob has gone, or no device runs such problems: reason
};

struct preparation_end {
    enum prepared outcome;
    struct compiled *compiled; // PREPARED, else NULL; the callee may take its insides
    const char *reason;
    enum job_cause cause;        // of PREPARED_LOST
    double seconds;              // of compiling, spent for this job
    struct queue_ticket *ticket; // as given to preparation_start; to be settled
};

struct preparation_events {
    // The preparation is freed afterwards and job->preparation is NULL already.
    void (*on_end)(void *owner, struct job *job, const struct preparation_end *end);
    void *owner;
};

// Sets job->preparation, and job->device_class when the problem has been read. on_end runs later,
// except that a job that is known to be impossible ends at once. parts and events outlive it;
// compiler is used.
void preparation_start(const struct daemon_parts *parts, const struct preparation_events *events,
                       struct job *job, const struct queue_ticket *ticket);
// Without callbacks. Returns the ticket that was given to preparation_start.
struct queue_ticket preparation_cancel(struct job *job);

#endif
