// Design note. Two hash tables: all jobs by number, and each search's jobs by key (a search without
// jobs is freed). The hash tables of uthash keep the order of insertion, so walking them is walking
// by age.
//
// Results are resident in a list, oldest first. They are a cache of the ledger, except for jobs
// that the ledger could not take (unsaved): those stay until they are acknowledged.
#include "daemon/state/job_table.h"
#include "daemon/sched/account.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define TENANT_JOBS_FACTOR 4 // a tenant may have so many times the places that are free

// A tenant's jobs. Lives as long as the tenant has searches.
struct tenant_jobs {
    char *tenant;
    size_t count;    // jobs
    size_t searches; // that count in it
    UT_hash_handle hh;
};

struct job_table {
    struct job *by_id;
    struct tenant_jobs *tenants;
    struct search *searches;
    uint64_t next_search;
    struct account_table *accounts;
    struct job_census census;
    struct job *resident; // list of jobs with a result in memory
    size_t resident_bytes;
    size_t resident_max;
};

struct job_table *job_table_create(size_t resident_max, struct account_table *accounts)
{
    struct job_table *jobs = xcalloc(1, sizeof(*jobs));

    jobs->resident_max = resident_max;
    jobs->accounts = accounts;
    jobs->next_search = 1;
    return jobs;
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
        search->place = xasprintf("%s/%s", tenant, name);
        search->census = &jobs->census;
        search->tenant_jobs = get_tenant_jobs(jobs, tenant);
        search->account = jobs->accounts ? accounts_search(jobs->accounts, tenant, name) : NULL;
        HASH_ADD_KEYPTR(hh, jobs->searches, search->place, strlen(search->place), search);
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

void job_table_remove(struct job_table *jobs, struct job *job)
{
    struct search *search = job->search;

    drop_result(jobs, job);
    job_drop_compiled(job);
    jobs->census.state[job->state]--;
    search->tenant_jobs->count--;
    if (!job_state_is_terminal(job->state)) {
        search->unfinished--;
    }
    HASH_DELETE(by_id, jobs->by_id, job);
    HASH_DELETE(by_key, search->jobs, job);
    if (!search->jobs) {
        HASH_DEL(jobs->searches, search);
        leave_tenant_jobs(jobs, search->tenant_jobs);
        account_release(jobs->accounts, search->account);
        free(search->tenant);
        free(search->name);
        free(search->place);
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
    char *place = xasprintf("%s/%s", tenant, name);

    HASH_FIND(hh, jobs->searches, place, strlen(place), search);
    free(place);
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
