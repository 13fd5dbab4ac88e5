// Design note. Two hash tables: all jobs by number, and each search's jobs by key (a search without
// jobs is freed). The hash tables of uthash keep the order of insertion, so walking them is walking
// by age.
//
// Results are resident in a list, oldest first. They are a cache of the ledger, except for jobs
// that the ledger could not take (unsaved): those stay until they are acknowledged.
#include "daemon/jobs.h"
#include "daemon/account.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define HOUSE_FACTOR 4 // a tenant may have so many times the places that are free

// A tenant's jobs. Lives as long as the tenant has searches.
struct house {
    char *tenant;
    size_t count;    // jobs
    size_t searches; // that count in it
    UT_hash_handle hh;
};

struct jobs {
    struct job *by_id;
    struct house *houses;
    struct search *searches;
    uint64_t next_search;
    struct account_table *accounts;
    struct job_census census;
    struct job *resident; // list of jobs with a result in memory
    size_t resident_bytes;
    size_t resident_max;
};

struct jobs *jobs_create(size_t resident_max, struct account_table *accounts)
{
    struct jobs *jobs = xcalloc(1, sizeof(*jobs));

    jobs->resident_max = resident_max;
    jobs->accounts = accounts;
    jobs->next_search = 1;
    return jobs;
}

static struct house *get_house(struct jobs *jobs, const char *tenant)
{
    struct house *house;

    HASH_FIND_STR(jobs->houses, tenant, house);
    if (!house) {
        house = xcalloc(1, sizeof(*house));
        house->tenant = xstrdup(tenant);
        HASH_ADD_KEYPTR(hh, jobs->houses, house->tenant, strlen(house->tenant), house);
    }
    house->searches++;
    return house;
}

static void leave_house(struct jobs *jobs, struct house *house)
{
    if (--house->searches == 0) {
        HASH_DEL(jobs->houses, house);
        free(house->tenant);
        free(house);
    }
}

bool jobs_have_room(const struct jobs *jobs, const char *tenant, size_t jobs_max)
{
    size_t count = jobs_count(jobs);
    size_t left = count < jobs_max ? jobs_max - count : 0;
    const struct house *house;

    HASH_FIND_STR(jobs->houses, tenant, house);
    return left > 0 && (!house || house->count / HOUSE_FACTOR < left);
}

static struct search *get_search(struct jobs *jobs, const char *tenant, const char *name)
{
    struct search *search = jobs_find_search(jobs, tenant, name);

    if (!search) {
        search = xcalloc(1, sizeof(*search));
        search->id = jobs->next_search++;
        search->tenant = xstrdup(tenant);
        search->name = xstrdup(name);
        search->place = xasprintf("%s/%s", tenant, name);
        search->census = &jobs->census;
        search->house = get_house(jobs, tenant);
        search->account = jobs->accounts ? accounts_search(jobs->accounts, tenant, name) : NULL;
        HASH_ADD_KEYPTR(hh, jobs->searches, search->place, strlen(search->place), search);
    }
    return search;
}

struct job *jobs_add(struct jobs *jobs, uint64_t id, const char *tenant, const char *search,
                     const char *key, enum job_state state)
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
    job->search->house->count++;
    if (!job_state_is_terminal(state)) {
        job->search->unfinished++;
    }
    HASH_ADD(by_id, jobs->by_id, id, sizeof(job->id), job);
    HASH_ADD_KEYPTR(by_key, job->search->jobs, job->key, strlen(job->key), job);
    return job;
}

static void drop_result(struct jobs *jobs, struct job *job)
{
    if (job->result.data) {
        DL_DELETE2(jobs->resident, job, resident_prev, resident_next);
        jobs->resident_bytes -= job->result.len;
        bytes_clear(&job->result);
    }
}

void jobs_remove(struct jobs *jobs, struct job *job)
{
    struct search *search = job->search;

    drop_result(jobs, job);
    jobs->census.state[job->state]--;
    search->house->count--;
    if (!job_state_is_terminal(job->state)) {
        search->unfinished--;
    }
    HASH_DELETE(by_id, jobs->by_id, job);
    HASH_DELETE(by_key, search->jobs, job);
    if (!search->jobs) {
        HASH_DEL(jobs->searches, search);
        leave_house(jobs, search->house);
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

void jobs_free(struct jobs *jobs)
{
    struct job *job;
    struct job *next;

    if (!jobs) {
        return;
    }
    HASH_ITER (by_id, jobs->by_id, job, next) {
        jobs_remove(jobs, job);
    }
    free(jobs);
}

struct job *jobs_find(const struct jobs *jobs, uint64_t id)
{
    struct job *job;

    HASH_FIND(by_id, jobs->by_id, &id, sizeof(id), job);
    return job;
}

struct search *jobs_find_search(const struct jobs *jobs, const char *tenant, const char *name)
{
    struct search *search;
    char *place = xasprintf("%s/%s", tenant, name);

    HASH_FIND(hh, jobs->searches, place, strlen(place), search);
    free(place);
    return search;
}

struct job *jobs_find_key(const struct jobs *jobs, const char *tenant, const char *search,
                          const char *key)
{
    struct search *owner = jobs_find_search(jobs, tenant, search);
    struct job *job = NULL;

    if (owner) {
        HASH_FIND(by_key, owner->jobs, key, strlen(key), job);
    }
    return job;
}

const struct account *jobs_account(const struct jobs *jobs, const char *tenant, const char *search)
{
    const struct account *account = accounts_find(jobs->accounts, tenant, search);

    return account ? account : accounts_find(jobs->accounts, tenant, NULL);
}

size_t jobs_count(const struct jobs *jobs)
{
    return HASH_CNT(by_id, jobs->by_id);
}

const struct job_census *jobs_census(const struct jobs *jobs)
{
    return &jobs->census;
}

struct job *jobs_first(const struct jobs *jobs)
{
    return jobs->by_id;
}

void jobs_keep_result(struct jobs *jobs, struct job *job, struct bytes *result_taken)
{
    struct job *old;
    struct job *next;

    drop_result(jobs, job);
    if (!result_taken->data) {
        return;
    }
    job->result = *result_taken;
    *result_taken = (struct bytes){0};
    jobs->resident_bytes += job->result.len;
    DL_APPEND2(jobs->resident, job, resident_prev, resident_next);
    for (old = jobs->resident; old && jobs->resident_bytes > jobs->resident_max; old = next) {
        next = old->resident_next;
        if (!old->unsaved && old != job) {
            drop_result(jobs, old);
        }
    }
}
