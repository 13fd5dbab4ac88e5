// Prepares one job: reads its problem and has its candidate compiled, and for a MEASURE job the
// reference and the baseline as well, all at the same time. Called by lifecycle.c, which hears once
// how the preparation ended. Knows nothing of queues, devices or the ledger.
#ifndef DAEMON_JOBS_PREPARATION_H
#define DAEMON_JOBS_PREPARATION_H

#include "daemon/state/job.h"
#include "daemon/state/parts.h"
#include "proto/messages.h"

enum prepared {
    PREPARED,        // `compiled` is the compiler's word about the candidate, good or bad
    PREPARED_DEFECT, // the problem, its reference or its baseline cannot be used: see `reason`
    PREPARED_LOST,   // the compiler process was lost, a blob is missing, or no device runs problems
                     // of this language: see `reason` and `cause`
};

struct preparation_end {
    enum prepared outcome;
    struct compiled *compiled; // for PREPARED, else NULL; the callee may take its contents
    const char *reason;        // a sentence, unless PREPARED; valid during the callback
    enum job_cause cause;      // for PREPARED_LOST
    double seconds;            // seconds of compiling the candidate, and of recording a reference
                               // for it alone; 0 when both were cached
    struct queue_grant *grant; // given to preparation_start; the callee finishes it
};

struct preparation_events {
    // Called once. job->preparation is NULL already, and the preparation is freed afterwards.
    void (*on_end)(void *owner, struct job *job, const struct preparation_end *end);
    void *owner;
};

// Starts to prepare the job. Sets job->preparation, and job->device_class once the problem has been
// read. on_end follows, and may run before this function returns. `parts` and `events` outlive the
// preparation; the grant is copied.
void preparation_start(const struct daemon_parts *parts, const struct preparation_events *events,
                       struct job *job, const struct queue_grant *grant);
// Cancels the preparation of the job without a callback. Returns the grant of preparation_start,
// which the caller finishes.
struct queue_grant preparation_cancel(struct job *job);

#endif
