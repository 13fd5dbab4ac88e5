// Turns a SUBMIT into a job: checks it, reads its problem, writes the job to the ledger and hands
// it to lifecycle.c. Equal SUBMITs at the same time become one job. Called by dispatch.c; reload.c
// uses the functions about specifications. Knows nothing of connections.
#ifndef DAEMON_JOBS_SUBMISSION_H
#define DAEMON_JOBS_SUBMISSION_H

#include "daemon/state/job.h"
#include "daemon/state/parts.h"
#include "proto/messages.h"

struct submissions; // the submissions that are in progress

// `parts` outlives it.
struct submissions *submissions_create(const struct daemon_parts *parts);
void submissions_free(struct submissions *submissions); // none may be in progress; NULL is fine

// How a submission ended. Exactly one of job and error is NULL.
struct submission_end {
    const struct job *job;   // the job of this key; already DONE when the result cache answered
    bool duplicate;          // the key was known before
    const struct err *error; // why the SUBMIT was refused
    uint64_t retry_after_ms; // when the caller may try again; 0 when that would not help
};
typedef void submission_done(void *owner, const struct submission_end *end);

// Starts a submission for this tenant and takes the contents of *submit_taken. `done` is called
// exactly once on the loop thread, perhaps before this function returns. `tenant` must stay valid
// until then.
void submission_start(struct submissions *submissions, const char *tenant,
                      struct submit *submit_taken, submission_done *done, void *owner);

// Cancels the submissions of this search that are in progress and have no job yet: a new job that
// one of them makes ends as CANCELLED as soon as the ledger has it.
void submissions_cancel(struct submissions *submissions, const char *tenant, const char *search);

// The digest by which two SUBMITs of a key are the same: of the packed specification without the
// fields that say how much of the compilation is needed. A search may need less or more of it when
// it goes on after a restart.
struct digest submission_spec_digest(const struct job_spec *spec);

// Copies the fields of a job's specification into the job and acquires its measurement setup, which
// the owner of the job releases. The device class is set when the problem has been read.
void submission_apply_spec(const struct daemon_parts *parts, struct job *job,
                           const struct job_spec *spec);

#endif
