// The stages of a job between its submission and its end. This is the only module that decides what
// happens to a job next: it begins each stage, and each stage calls back with what has come of the
// job. Submission and reload hand jobs over to it; dispatch cancels through it. It knows nothing of
// connections, and how a stage is done is up to the stage.
#ifndef DAEMON_JOBS_LIFECYCLE_H
#define DAEMON_JOBS_LIFECYCLE_H

#include "daemon/state/job.h"
#include "daemon/state/parts.h"

struct lifecycle;

// `parts` outlives it. From now on parts->scheduler calls back when a job may go on.
struct lifecycle *lifecycle_create(const struct daemon_parts *parts);
// Begins nothing more, cancels preparations and kills runs. The ledger is told that the jobs of
// these runs are QUEUED again, so that the restart does not count as a lost executor. The caller
// waits until neither scheduler nor compiler is busy before it frees anything.
void lifecycle_stop(struct lifecycle *lifecycle);
void lifecycle_free(struct lifecycle *lifecycle); // NULL is fine

// Lets a QUEUED job begin. The ledger has the job, and its fields and its measurement setup are set
// (submission_apply_spec).
void lifecycle_admit(struct lifecycle *lifecycle, struct job *job);
// Stops the job in whatever stage it is and ends it as CANCELLED with this cause and sentence.
// No-op for a job that has ended, whose end is on the way to the ledger, or that the ledger does
// not have.
void lifecycle_cancel(struct lifecycle *lifecycle, struct job *job, enum job_cause cause,
                      const char *reason);
// To be called once a second: charges running jobs to their accounts and cancels waiting jobs whose
// budget has been used up.
void lifecycle_tick(struct lifecycle *lifecycle);

#endif
