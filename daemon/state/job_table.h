// The table of jobs: every job that is not finished, and every finished one whose result has not
// been acknowledged. Owns jobs and searches, finds them by number and by key, and keeps the results
// of recently finished jobs in memory within a bound. Knows nothing of what moves them.
#ifndef DAEMON_STATE_JOB_TABLE_H
#define DAEMON_STATE_JOB_TABLE_H

#include "daemon/state/job.h"

struct account;
struct account_table;
struct job_table;

// resident_max: bytes of results that are kept in memory beside the ledger's copy. Every search
// gets its account from accounts (outlives the jobs; NULL: none has one).
struct job_table *job_table_create(size_t resident_max, struct account_table *accounts);
void job_table_free(struct job_table *jobs); // NULL is fine

// A new job in `state`, with number, search and key set and the rest zero (numbers that may be
// absent: NaN). The number and the triple (tenant, search, key) must be free. No tenant's name has
// a slash.
struct job *job_table_add(struct job_table *jobs, uint64_t id, const char *tenant,
                          const char *search, const char *key, enum job_state state);
// Takes it out of the table and frees it. It must be in no queue and have neither preparation nor
// run nor waits.
void job_table_remove(struct job_table *jobs, struct job *job);

struct job *job_table_find(const struct job_table *jobs, uint64_t id);
struct job *job_table_find_key(const struct job_table *jobs, const char *tenant, const char *search,
                               const char *key);
struct search *job_table_find_search(const struct job_table *jobs, const char *tenant,
                                     const char *name);
// The account of this search, or its tenant's when it is a new one; NULL when that is new too.
const struct account *job_table_account(const struct job_table *jobs, const char *tenant,
                                        const char *search);
size_t job_table_count(const struct job_table *jobs);
// Whether a job table of jobs_max jobs has a place for one more of this tenant. It may have no more
// than four times the places that are free, so that whoever comes next finds one (dynamic
// thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 1998).
bool job_table_have_room(const struct job_table *jobs, const char *tenant, size_t jobs_max);
const struct job_census *job_table_census(const struct job_table *jobs);
// Oldest first; job->by_id.next is the next one. The same for a search: search->jobs and
// job->by_key.next.
struct job *job_table_first(const struct job_table *jobs);

// Keeps the packed result of a job in memory (taken). Older ones whose job is saved make room.
void job_table_keep_result(struct job_table *jobs, struct job *job, struct bytes *result_taken);

#endif
