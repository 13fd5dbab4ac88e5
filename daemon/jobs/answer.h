// Replies that tell about jobs: job_info messages, with results where they are wanted. Results that
// are not in memory are fetched from the ledger first.
#ifndef DAEMON_JOBS_ANSWER_H
#define DAEMON_JOBS_ANSWER_H

#include "daemon/state/job_table.h"
#include "daemon/state/parts.h"
#include "daemon/store/ledger.h"
#include "net/rpc/service.h"

#define ANSWER_RESULTS_MAX 64 // results in one reply: they fit into a message at their largest
#define ANSWER_INFOS_MAX 4096 // jobs without results in one reply

struct answers; // those that wait for the ledger

// parts outlive it; jobs and ledger are used.
struct answers *answers_create(const struct daemon_parts *parts);
void answers_free(struct answers *answers);            // none may be pending; NULL is fine
size_t answers_pending(const struct answers *answers); // exchanges not answered yet

// Replies `waited`: of these jobs the finished ones, oldest request first, at most
// ANSWER_RESULTS_MAX of them with their results, and the numbers that are no jobs of the caller's.
// Consumes the
// exchange, at once or later.
void answer_waited(struct answers *answers, struct exchange *exchange, const uint64_t *jobs,
                   size_t count);

// The same as waits_create's on_due, with the answers as owner.
void answer_due(void *answers, struct exchange *exchange, const uint64_t *jobs, size_t count);

// The job of this number, if the exchange's caller may know of it; else NULL.
struct job *answer_find(const struct job_table *jobs, const struct exchange *exchange, uint64_t id);
// Everything about a job but its result; *info is uninitialised before.
void answer_info(struct job_info *info, const struct job *job);

#endif
