// How jobs end: the ledger first, then the state, then those who wait. Also results that the ledger
// could not take, and results that nobody fetches.
#ifndef DAEMON_JOBS_COMPLETION_H
#define DAEMON_JOBS_COMPLETION_H

#include "daemon/jobs/wait.h"
#include "daemon/state/counters.h"
#include "daemon/state/job_table.h"
#include "daemon/state/parts.h"
#include "daemon/store/ledger.h"
#include "proto/messages.h"

struct completions;

// parts outlive it; jobs, ledger, waits, counters and limits are used.
struct completions *completions_create(const struct daemon_parts *parts);
void completions_free(struct completions *completions); // none may be pending; NULL is fine
size_t
completions_pending(const struct completions *completions); // ends that the ledger has not answered

size_t completions_unsaved(
    const struct completions *completions); // jobs whose end the ledger could not take

// The only ways for a job to end. It must be in no queue and have neither preparation nor run; from
// now on it is `settling`, later in its state.
void end_cancelled(struct completions *completions, struct job *job, enum job_cause cause,
                   const char *reason);
void end_buried(struct completions *completions, struct job *job, enum job_cause cause,
                const char *reason);
// DONE with what a device gave. cacheable: other jobs may be answered with it.
void end_measured(struct completions *completions, struct job *job, const struct result *result,
                  bool cacheable);
void end_compiled(struct completions *completions, struct job *job,
                  const struct compiled *compiled);
// DONE with a packed result of the cache (taken).
void end_cached(struct completions *completions, struct job *job, struct bytes *result_taken);
// DONE, a MEASURE job that was decided without a device: the candidate does not compile (compiled
// says so), or the problem's own code does not (compiled is NULL, and nothing is cached).
void end_unmeasured(struct completions *completions, struct job *job, uint64_t verdict,
                    const char *reason, const struct compiled *compiled);
// DONE already, in the ledger too, when the job was submitted.
void end_at_once(struct completions *completions, struct job *job, struct bytes *result_taken);

// Forgets finished jobs, in memory and in the ledger.
void completions_forget(struct completions *completions, struct job *const *jobs, size_t count,
                        ledger_done *done, void *owner);
// Once a second: offers the ledger again what it could not take, drops results that nobody has
// fetched for a week.
void completions_tick(struct completions *completions);

#endif
