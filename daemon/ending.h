// How jobs end: the ledger first, then the state, then those who wait. Also results that the ledger
// could not take, and results that nobody fetches.
#ifndef DAEMON_ENDING_H
#define DAEMON_ENDING_H

#include "daemon/jobs.h"
#include "daemon/ledger.h"
#include "daemon/tally.h"
#include "daemon/wait.h"
#include "proto/all.h"

struct endings;

struct endings *endings_create(struct jobs *jobs, struct ledger *ledger, struct waits *waits,
                               struct tally *tally, bool sandbox_off);
void endings_free(struct endings *endings);            // none may be pending; NULL is fine
size_t endings_pending(const struct endings *endings); // ends that the ledger has not answered

size_t endings_unsaved(const struct endings *endings); // jobs whose end the ledger could not take

// The only ways for a job to end. It must be in no queue and have neither preparation nor run; from
// now on it is `settling`, later in its state.
void end_cancelled(struct endings *endings, struct job *job, const char *reason);
void end_buried(struct endings *endings, struct job *job, const char *reason);
// DONE with what a device gave. cacheable: other jobs may be answered with it.
void end_measured(struct endings *endings, struct job *job, const struct result *result,
                  bool cacheable);
void end_compiled(struct endings *endings, struct job *job, const struct compiled *compiled);
// DONE with a packed result of the cache (taken).
void end_cached(struct endings *endings, struct job *job, struct bytes *result_taken);
// DONE, a MEASURE job that was decided without a device: the candidate does not compile (compiled
// says so), or the problem's own code does not (compiled is NULL, and nothing is cached).
void end_unmeasured(struct endings *endings, struct job *job, uint64_t verdict, const char *reason,
                    const struct compiled *compiled);
// DONE already, in the ledger too, when the job was submitted.
void end_at_once(struct endings *endings, struct job *job, struct bytes *result_taken);

// Forgets finished jobs, in memory and in the ledger.
void endings_forget(struct endings *endings, struct job *const *jobs, size_t count,
                    ledger_done *done, void *owner);
// Once a second: offers the ledger again what it could not take, drops results that nobody has
// fetched for a week.
void endings_tick(struct endings *endings);

// The result cache's key for a MEASURE job.
struct digest ending_cache_key(const struct job *job, bool sandbox_off);

#endif
