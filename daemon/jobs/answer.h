// Replies about jobs: job_info messages, and the answers of WAIT with results. A result that is not
// in memory is read from the ledger first. Called by dispatch.c, status.c and, for parked WAITs,
// wait.c. Changes no job, but forgets one whose result turns out to be damaged.
#ifndef DAEMON_JOBS_ANSWER_H
#define DAEMON_JOBS_ANSWER_H

#include "daemon/state/job_table.h"
#include "daemon/state/parts.h"
#include "daemon/store/ledger.h"
#include "net/rpc/service.h"

#define ANSWER_RESULTS_MAX 64 // results in one reply; so many of the largest size fit a message
#define ANSWER_BYTES_MAX                                                                           \
    ((size_t)1 << 20) // packed results in one reply, unless the first is larger

struct answers; // the replies that wait for the ledger

// `parts` outlives it. Uses jobs, ledger and completions.
struct answers *answers_create(const struct daemon_parts *parts);
void answers_free(struct answers *answers);            // none may be pending; NULL is fine
size_t answers_pending(const struct answers *answers); // exchanges that wait for the ledger

// Replies with the message `waited`: those of the jobs that have finished, in the order of `jobs`,
// at most ANSWER_RESULTS_MAX of them and about ANSWER_BYTES_MAX, with their results; and the
// numbers that are no jobs of the caller. No number may be there twice. Answers the exchange, at
// once or after the ledger has been read, for which callers take turns.
void answer_waited(struct answers *answers, struct exchange *exchange, const uint64_t *jobs,
                   size_t count);

// Does the same, as the callback on_due of waits_create; the owner is a struct answers.
void answer_due(void *answers, struct exchange *exchange, const uint64_t *jobs, size_t count);

// Returns the job of this number, or NULL when there is none that the exchange's caller may see.
struct job *answer_find(const struct job_table *jobs, const struct exchange *exchange, uint64_t id);
// Fills *info, which is uninitialised before, with everything about the job but its result.
void answer_info(struct job_info *info, const struct job *job);

#endif
