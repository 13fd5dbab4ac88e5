// One SUBMIT on its way from the message to a job: checked, its problem read, journalled, admitted.
// Equal ones at the same time become one job. Knows nothing of connections.
#ifndef DAEMON_JOBS_SUBMISSION_H
#define DAEMON_JOBS_SUBMISSION_H

#include "daemon/state/job.h"
#include "daemon/state/parts.h"
#include "proto/messages.h"

struct submissions; // those under way

// parts outlive it.
struct submissions *submissions_create(const struct daemon_parts *parts);
void submissions_free(struct submissions *submissions); // none may be under way; NULL is fine

// How it came out. One of job and error is NULL.
struct submission_end {
    const struct job *job;   // that its key has; DONE already when the cache answered
    bool duplicate;          // the key was known before
    const struct err *error; // why it was refused
    uint64_t retry_after_ms; // the caller may try again then; 0: that would not help
};
typedef void submission_done(void *owner, const struct submission_end *end);

// Takes the insides of *submit_taken. done runs exactly once on the loop thread, perhaps inside;
// tenant, whose SUBMIT it is, outlives that.
void submission_start(struct submissions *submissions, const char *tenant,
                      struct submit *submit_taken, submission_done *done, void *owner);

// Sets a job's fields from its spec; the measurement setup is acquired. For reloading too. The device class
// follows when the problem has been read.
void submission_apply_spec(const struct daemon_parts *parts, struct job *job,
                           const struct job_spec *spec);

#endif
