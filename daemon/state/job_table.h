// The job table: every unfinished job, and every finished job whose result has not been
// acknowledged. Owns jobs and searches, finds them by number and by key, and keeps the results of
// recently finished jobs in memory up to a limit. Used by all rooms of the daemon. Knows nothing of
// queues, devices or the ledger.
#ifndef DAEMON_STATE_JOB_TABLE_H
#define DAEMON_STATE_JOB_TABLE_H

#include "daemon/state/job.h"
#include "daemon/state/stages.h"

struct account;
struct account_table;
struct job_table;

// resident_max is the number of bytes of results that are kept in memory beside the ledger's copy.
// Every search gets its account from `accounts`, which outlives the table; with NULL, searches have
// no accounts.
struct job_table *job_table_create(size_t resident_max, struct account_table *accounts);
// The clock of the stages and stamps of jobs from now on, clock_system at first. To be called
// before there are jobs.
void job_table_set_clock(struct job_table *jobs, const struct clock *clock);
// Frees the table with its jobs and searches. NULL is fine.
void job_table_free(struct job_table *jobs);

// Adds a job in `state`. Number, search and key are set; the other fields are zero, or NaN where a
// number may be absent. The number and the triple (tenant, search, key) must be unused. The name of
// a tenant contains no slash.
struct job *job_table_add(struct job_table *jobs, uint64_t id, const char *tenant,
                          const char *search, const char *key, enum job_state state);
// Removes the job from the table and frees it. It must be in no queue and have no preparation, no
// run and no waits.
void job_table_remove(struct job_table *jobs, struct job *job);

// Each of these returns NULL when there is none.
struct job *job_table_find(const struct job_table *jobs, uint64_t id);
struct job *job_table_find_key(const struct job_table *jobs, const char *tenant, const char *search,
                               const char *key);
struct search *job_table_find_search(const struct job_table *jobs, const char *tenant,
                                     const char *name);
// Returns the account of this search. For a new search it is the tenant's account, and NULL when
// the tenant is new too.
const struct account *job_table_account(const struct job_table *jobs, const char *tenant,
                                        const char *search);
size_t job_table_count(const struct job_table *jobs);
// Returns whether a table of at most jobs_max jobs has room for one more job of this tenant. A
// tenant may have at most four times as many jobs as there is room left for, so that the next
// tenant finds room too (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on
// Networking 6, 1998).
bool job_table_have_room(const struct job_table *jobs, const char *tenant, size_t jobs_max);
const struct job_census *job_table_census(const struct job_table *jobs);
// Where the time of its searches went, those included that have no jobs any more.
const struct stage_table *job_table_stages(const struct job_table *jobs);
// Returns the oldest job; job->by_id.next is the next one. The jobs of one search are walked alike
// by search->jobs and job->by_key.next.
struct job *job_table_first(const struct job_table *jobs);

// A place in a walk that may pause. Jobs may be added and removed meanwhile: a walk sees every job
// that is there all the time. Zeroed, it is of no walk.
struct job_cursor {
    struct job_table *jobs; // NULL: of no walk
    struct job *at;         // the next job
    bool of_search;         // through the jobs of one search
    struct job_cursor *prev;
    struct job_cursor *next;
};

// Begins a walk by age through the jobs of the search, or with NULL through all jobs.
void job_cursor_begin(struct job_cursor *cursor, struct job_table *jobs,
                      const struct search *search);
// Returns the next job, NULL when there is none left or the cursor is of no walk.
struct job *job_cursor_next(struct job_cursor *cursor);
// Ends the walk. To be called before the cursor is freed. No-op when it is of none.
void job_cursor_end(struct job_cursor *cursor);

// Keeps the packed result of a job in memory and takes ownership of it. When the limit is exceeded,
// older results are dropped, but not those that the ledger does not have.
void job_table_keep_result(struct job_table *jobs, struct job *job, struct bytes *result_taken);

#endif
