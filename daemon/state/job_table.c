// Design note. One hash table has all jobs by number. Each search has a hash table of its jobs by
// key, and is freed with its last job. uthash keeps the order of insertion, so that a walk through
// a table is a walk by age.
//
// Results that are in memory form a list, oldest first. The list is a cache of the ledger, except
// for jobs whose end the ledger could not take (unsaved): those results stay until they have been
// saved or acknowledged.
#include "daemon/state/job_table.h"
#include "common/clock.h"
#include "daemon/sched/account.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define TENANT_JOBS_FACTOR 4 // jobs that a tenant may have for each job that there is room for

// Counts the jobs of one tenant. Exists as long as the tenant has searches.
struct tenant_jobs {
    char *tenant;
    size_t count;    // jobs of all its searches
    size_t searches; // searches that refer to this struct
    UT_hash_handle hh;
};

struct job_table {
    struct job *by_id;              // all jobs
    struct tenant_jobs *tenants;    // by name
    struct search *searches;        // by path
    uint64_t next_search;           // number of the next new search
    struct account_table *accounts; // not owned; may be NULL
    struct job_census census;       // jobs by state
    struct stage_table stages;      // of the searches, and of some that were here
    const struct clock *clock;      // of stages and stamps
    struct job *resident;           // list of the jobs with a result in memory, oldest first
    size_t resident_bytes;          // sum of their results
    size_t resident_max;            // limit of that sum
    struct job_cursor *cursors;     // list of those that are of a walk
};

struct job_table *job_table_create(size_t resident_max, struct account_table *accounts)
{
    struct job_table *jobs = xcalloc(1, sizeof(*jobs));

    jobs->resident_max = resident_max;
    jobs->accounts = accounts;
    jobs->next_search = 1;
    jobs->clock = &clock_system;
    return jobs;
}

void job_table_set_clock(struct job_table *jobs, const struct clock *clock)
{
    jobs->clock = clock;
}

static struct tenant_jobs *get_tenant_jobs(struct job_table *jobs, const char *tenant)
{
    struct tenant_jobs *tenant_jobs;

    HASH_FIND_STR(jobs->tenants, tenant, tenant_jobs);
    if (!tenant_jobs) {
        tenant_jobs = xcalloc(1, sizeof(*tenant_jobs));
        tenant_jobs->tenant = xstrdup(tenant);
        HASH_ADD_KEYPTR(hh, jobs->tenants, tenant_jobs->tenant, strlen(tenant_jobs->tenant),
                        tenant_jobs);
    }
    tenant_jobs->searches++;
    return tenant_jobs;
}

static void leave_tenant_jobs(struct job_table *jobs, struct tenant_jobs *tenant_jobs)
{
    if (--tenant_jobs->searches == 0) {
        HASH_DEL(jobs->tenants, tenant_jobs);
        free(tenant_jobs->tenant);
        free(tenant_jobs);
    }
}

bool job_table_have_room(const struct job_table *jobs, const char *tenant, size_t jobs_max)
{
    size_t count = job_table_count(jobs);
    size_t left = count < jobs_max ? jobs_max - count : 0;
    const struct tenant_jobs *tenant_jobs;

    HASH_FIND_STR(jobs->tenants, tenant, tenant_jobs);
    return left > 0 && (!tenant_jobs || tenant_jobs->count / TENANT_JOBS_FACTOR < left);
}

static struct search *get_search(struct job_table *jobs, const char *tenant, const char *name)
{
    struct search *search = job_table_find_search(jobs, tenant, name);

    if (!search) {
        search = xcalloc(1, sizeof(*search));
        search->id = jobs->next_search++;
        search->tenant = xstrdup(tenant);
        search->name = xstrdup(name);
        search->path = xasprintf("%s/%s", tenant, name);
        search->census = &jobs->census;
        search->stages = stages_enter(&jobs->stages, search->path);
        search->clock = jobs->clock;
        search->tenant_jobs = get_tenant_jobs(jobs, tenant);
        search->account = jobs->accounts ? accounts_search(jobs->accounts, tenant, name) : NULL;
        HASH_ADD_KEYPTR(hh, jobs->searches, search->path, strlen(search->path), search);
    }
    return search;
}

struct job *job_table_add(struct job_table *jobs, uint64_t id, const char *tenant,
                          const char *search, const char *key, enum job_state state)
{
    struct job *job = xcalloc(1, sizeof(*job));

    job->id = id;
    job->search = get_search(jobs, tenant, search);
    job->key = xstrdup(key);
    job->anchor_log2 = NAN;
    job->precision_log2 = NAN;
    job->max_seconds = NAN;
    job->state = (uint8_t)state;
    jobs->census.state[state]++;
    stages_move(job->search->stages, JOB_STATE_COUNT, state, clock_now_ns(jobs->clock));
    job->search->tenant_jobs->count++;
    if (!job_state_is_terminal(state)) {
        job->search->unfinished++;
    }
    HASH_ADD(by_id, jobs->by_id, id, sizeof(job->id), job);
    HASH_ADD_KEYPTR(by_key, job->search->jobs, job->key, strlen(job->key), job);
    return job;
}

static void drop_result(struct job_table *jobs, struct job *job)
{
    if (job->result.data) {
        DL_DELETE2(jobs->resident, job, resident_prev, resident_next);
        jobs->resident_bytes -= job->result.len;
        bytes_clear(&job->result);
    }
}

// --- walks that pause

static struct job *after(const struct job_cursor *cursor, const struct job *job)
{
    return cursor->of_search ? job->by_key.next : job->by_id.next;
}

void job_cursor_begin(struct job_cursor *cursor, struct job_table *jobs,
                      const struct search *search)
{
    *cursor = (struct job_cursor){
        .jobs = jobs, .at = search ? search->jobs : jobs->by_id, .of_search = search};
    DL_APPEND(jobs->cursors, cursor);
}

struct job *job_cursor_next(struct job_cursor *cursor)
{
    struct job *job = cursor->at;

    cursor->at = job ? after(cursor, job) : NULL;
    return job;
}

void job_cursor_end(struct job_cursor *cursor)
{
    if (cursor->jobs) {
        DL_DELETE(cursor->jobs->cursors, cursor);
        *cursor = (struct job_cursor){0};
    }
}

static void move_cursors(struct job_table *jobs, const struct job *job)
{
    struct job_cursor *cursor;

    DL_FOREACH (jobs->cursors, cursor) {
        if (cursor->at == job) {
            cursor->at = after(cursor, job);
        }
    }
}

void job_table_remove(struct job_table *jobs, struct job *job)
{
    struct search *search = job->search;

    move_cursors(jobs, job);
    drop_result(jobs, job);
    job_drop_compiled(job);
    jobs->census.state[job->state]--;
    stages_move(search->stages, (enum job_state)job->state, JOB_STATE_COUNT,
                clock_now_ns(jobs->clock));
    search->tenant_jobs->count--;
    if (!job_state_is_terminal(job->state)) {
        search->unfinished--;
    }
    HASH_DELETE(by_id, jobs->by_id, job);
    HASH_DELETE(by_key, search->jobs, job);
    if (!search->jobs) {
        HASH_DEL(jobs->searches, search);
        leave_tenant_jobs(jobs, search->tenant_jobs);
        stages_leave(&jobs->stages, search->stages);
        account_release(jobs->accounts, search->account);
        free(search->tenant);
        free(search->name);
        free(search->path);
        free(search);
    }
    free(job->key);
    free(job->reason);
    free(job);
}

void job_table_free(struct job_table *jobs)
{
    struct job *job;
    struct job *next;

    if (!jobs) {
        return;
    }
    HASH_ITER (by_id, jobs->by_id, job, next) {
        job_table_remove(jobs, job);
    }
    stage_table_release(&jobs->stages);
    free(jobs);
}

struct job *job_table_find(const struct job_table *jobs, uint64_t id)
{
    struct job *job;

    HASH_FIND(by_id, jobs->by_id, &id, sizeof(id), job);
    return job;
}

struct search *job_table_find_search(const struct job_table *jobs, const char *tenant,
                                     const char *name)
{
    struct search *search;
    char *path = xasprintf("%s/%s", tenant, name);

    HASH_FIND(hh, jobs->searches, path, strlen(path), search);
    free(path);
    return search;
}

struct job *job_table_find_key(const struct job_table *jobs, const char *tenant, const char *search,
                               const char *key)
{
    struct search *owner = job_table_find_search(jobs, tenant, search);
    struct job *job = NULL;

    if (owner) {
        HASH_FIND(by_key, owner->jobs, key, strlen(key), job);
    }
    return job;
}

const struct account *job_table_account(const struct job_table *jobs, const char *tenant,
                                        const char *search)
{
    const struct account *account = accounts_find(jobs->accounts, tenant, search);

    return account ? account : accounts_find(jobs->accounts, tenant, NULL);
}

size_t job_table_count(const struct job_table *jobs)
{
    return HASH_CNT(by_id, jobs->by_id);
}

const struct job_census *job_table_census(const struct job_table *jobs)
{
    return &jobs->census;
}

const struct stage_table *job_table_stages(const struct job_table *jobs)
{
    return &jobs->stages;
}

struct job *job_table_first(const struct job_table *jobs)
{
    return jobs->by_id;
}

void job_table_keep_result(struct job_table *jobs, struct job *job, struct bytes *result_taken)
{
    drop_result(jobs, job);
    if (!result_taken->data) {
        return;
    }
    job->result = *result_taken;
    *result_taken = (struct bytes){0};
    jobs->resident_bytes += job->result.len;
    DL_APPEND2(jobs->resident, job, resident_prev, resident_next);
    struct job *old;
    struct job *next;
    for (old = jobs->resident; old && jobs->resident_bytes > jobs->resident_max; old = next) {
        next = old->resident_next;
        if (!old->unsaved && old != job) {
            drop_result(jobs, old);
        }
    }
}
