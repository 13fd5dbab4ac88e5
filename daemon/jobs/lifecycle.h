// A job's way, from its submission to its end. The only module that decides what happens to a job
// next: it begins each stage, and each stage tells it what has come of the job.
#ifndef DAEMON_JOBS_LIFECYCLE_H
#define DAEMON_JOBS_LIFECYCLE_H

#include "daemon/state/job.h"
#include "daemon/state/parts.h"

struct lifecycle;

// parts outlive it. From now on parts->scheduler tells it which job may go on.
struct lifecycle *lifecycle_create(const struct daemon_parts *parts);
// Begins nothing more, gives up preparations, kills runs (the ledger is told that those jobs are
// QUEUED, not lost). Then wait until scheduler and compiler are not busy before freeing.
void lifecycle_stop(struct lifecycle *lifecycle);
void lifecycle_free(struct lifecycle *lifecycle); // NULL is fine

// A QUEUED job that the ledger has: let it begin. Its spec's fields and measurement setup are set.
void lifecycle_admit(struct lifecycle *lifecycle, struct job *job);
// Stops the job wherever it is and ends it as CANCELLED. No-op for a job that has ended or is about
// to.
void lifecycle_cancel(struct lifecycle *lifecycle, struct job *job, enum job_cause cause,
                      const char *reason);
// Once a second: charges what runs, ends what waits for a budget that is used up.
void lifecycle_tick(struct lifecycle *lifecycle);

#endif
