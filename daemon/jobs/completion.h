// Ends jobs: writes the end into the ledger, changes the state, and wakes those who wait. Also
// saves ends again that the ledger could not take, and forgets results that nobody has fetched.
// Called by lifecycle.c, and by submission, reload and dispatch. Decides nothing about jobs and
// knows nothing of devices or executors.
#ifndef DAEMON_JOBS_COMPLETION_H
#define DAEMON_JOBS_COMPLETION_H

#include "daemon/jobs/wait.h"
#include "daemon/state/counters.h"
#include "daemon/state/job_table.h"
#include "daemon/state/parts.h"
#include "daemon/store/ledger.h"
#include "proto/messages.h"

struct completions;

// `parts` outlives it. Uses jobs, ledger, waits, counters, clock and limits.
struct completions *completions_create(const struct daemon_parts *parts);
// No end may be pending. NULL is fine.
void completions_free(struct completions *completions);
// Returns the number of ends that the ledger has not answered.
size_t completions_pending(const struct completions *completions);
// Returns the number of jobs whose end the ledger could not take.
size_t completions_unsaved(const struct completions *completions);

// The following functions are the only ways for a job to end. The job must be in no queue and have
// neither preparation nor run. Except for complete_at_once the job is `completing` afterwards and
// enters its terminal state later.

// CANCELLED with this cause and sentence.
void complete_cancelled(struct completions *completions, struct job *job, enum job_cause cause,
                        const char *reason);
// BURIED with this cause and sentence.
void complete_buried(struct completions *completions, struct job *job, enum job_cause cause,
                     const char *reason);
// DONE with the result of a measurement. `cacheable` lets it answer equal jobs.
void complete_measured(struct completions *completions, struct job *job,
                       const struct result *result, bool cacheable);
// DONE, a COMPILE job.
void complete_compiled(struct completions *completions, struct job *job,
                       const struct compiled *compiled);
// DONE with a packed result of the result cache, which is taken.
void complete_cached(struct completions *completions, struct job *job, struct bytes *result_taken);
// DONE, a MEASURE job that needs no device. Either the candidate does not compile, and `compiled`
// says so; or reference or baseline do not, then `compiled` is NULL and nothing is cached.
void complete_unmeasured(struct completions *completions, struct job *job, uint64_t verdict,
                         const char *reason, const struct compiled *compiled);
// DONE at once, with a packed result of the result cache, which is taken. The ledger wrote the end
// together with the job itself.
void complete_at_once(struct completions *completions, struct job *job, struct bytes *result_taken);

// Removes finished jobs from memory and from the ledger. `done` is called when the ledger has
// answered; it may be NULL.
void completions_forget(struct completions *completions, struct job *const *jobs, size_t count,
                        ledger_done *done, void *owner);
// To be called once a second. Posts unsaved ends again and forgets results that have not been
// acknowledged within a week.
void completions_tick(struct completions *completions);

#endif
