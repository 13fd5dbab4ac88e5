// The table of jobs: every job that is not finished, and every finished one whose result has not
// been acknowledged. Owns jobs and searches, finds them by number and by key, and keeps the results
// of recently finished jobs in memory within a bound. Knows nothing of what moves them.
#ifndef DAEMON_JOBS_H
#define DAEMON_JOBS_H

#include "daemon/job.h"

struct account;
struct account_table;
struct jobs;

// resident_max: bytes of results that are kept in memory beside the ledger's copy. Every search
// gets its account from accounts (outlives the jobs; NULL: none has one).
struct jobs *jobs_create(size_t resident_max, struct account_table *accounts);
void jobs_free(struct jobs *jobs); // NULL is fine

// A new job in `state`, with number, search and key set and the rest zero (numbers that may be
// absent: NaN). The number and the triple (tenant, search, key) must be free. No tenant's name has
// a slash.
struct job *jobs_add(struct jobs *jobs, uint64_t id, const char *tenant, const char *search,
                     const char *key, enum job_state state);
// Takes it out of the table and frees it. It must be in no queue and have neither preparation nor
// run nor waits.
void jobs_remove(struct jobs *jobs, struct job *job);

struct job *jobs_find(const struct jobs *jobs, uint64_t id);
struct job *jobs_find_key(const struct jobs *jobs, const char *tenant, const char *search,
                          const char *key);
struct search *jobs_find_search(const struct jobs *jobs, const char *tenant, const char *name);
// The account of this search, or its tenant's when it is a new one; NULL when that is new too.
const struct account *jobs_account(const struct jobs *jobs, const char *tenant, const char *search);
size_t jobs_count(const struct jobs *jobs);
// Whether a house of jobs_max jobs has a place for one more of this tenant. It may have no more
// than four times the places that are free, so that whoever comes next finds one (dynamic
// thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 1998).
bool jobs_have_room(const struct jobs *jobs, const char *tenant, size_t jobs_max);
const struct job_census *jobs_census(const struct jobs *jobs);
// Oldest first; job->by_id.next is the next one. The same for a search: search->jobs and
// job->by_key.next.
struct job *jobs_first(const struct jobs *jobs);

// Keeps the packed result of a job in memory (taken). Older ones whose job is saved make room.
void jobs_keep_result(struct jobs *jobs, struct job *job, struct bytes *result_taken);

#endif
