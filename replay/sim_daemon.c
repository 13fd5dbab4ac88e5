#include "replay/sim_daemon.h"

#include "client/run/run_state.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define COMPILE_LEAST_S 0.001 // seconds of a compilation, also when none were recorded
#define MEASURE_LEAST_S 0.001 // seconds of a measurement
#define SIM_KEY_MAX 32        // bytes of a job's key

struct job {
    struct sim_daemon_search *search; // NULL once the search is freed or the job cancelled
    uint64_t number;
    enum job_kind kind;
    bool record;    // the second measurement, of a new record
    bool cancelled; // while it ran: it holds no device and no slot any more
    char key[SIM_KEY_MAX];
    const struct space_candidate *candidate; // NULL: not in the space
    uint64_t priority;
    job_service_callback *callback;
    void *owner;
    uint64_t tag;
    struct job *prev, *next;
};

struct sim_daemon_search {
    struct job_service jobs; // for the pipeline
    struct sim_daemon *sim_daemon;
    const struct recorded_space *recorded;
    struct job *waiting; // list of measurements, the most urgent first
    double used;         // device seconds
    struct sim_daemon_search *prev, *next;
};

struct sim_daemon {
    struct sim *sim;
    struct sim_daemon_config config;
    unsigned measuring, compiling;
    uint64_t jobs;
    struct job *to_compile;             // list of compilations that wait
    struct job *running;                // list of jobs on devices and in compile slots
    struct sim_daemon_search *searches; // list
};

struct sim_daemon *sim_daemon_create(struct sim *sim, const struct sim_daemon_config *config)
{
    struct sim_daemon *sim_daemon = xcalloc(1, sizeof(*sim_daemon));

    sim_daemon->sim = sim;
    sim_daemon->config = *config;
    return sim_daemon;
}

static void free_jobs(struct job **list)
{
    struct job *job, *next;

    DL_FOREACH_SAFE (*list, job, next) {
        DL_DELETE(*list, job);
        free(job);
    }
}

void sim_daemon_free(struct sim_daemon *sim_daemon)
{
    if (sim_daemon) {
        free_jobs(&sim_daemon->to_compile);
        free_jobs(&sim_daemon->running);
        free(sim_daemon);
    }
}

void sim_daemon_search_free(struct sim_daemon_search *search)
{
    struct job *job, *next;

    if (!search) {
        return;
    }
    free_jobs(&search->waiting);
    DL_FOREACH_SAFE (search->sim_daemon->to_compile, job, next) {
        if (job->search == search) {
            DL_DELETE(search->sim_daemon->to_compile, job);
            free(job);
        }
    }
    DL_FOREACH (search->sim_daemon->running, job) {
        job->search = job->search == search ? NULL : job->search;
    }
    DL_DELETE(search->sim_daemon->searches, search);
    free(search);
}

static void serve(struct sim_daemon *sim_daemon);

// --- the end of a job

static const struct result *result_of(const struct job *job)
{
    const struct space_candidate *c = job->candidate;

    return job->record && c->record ? c->record : c->result;
}

// Makes the job_info that a daemon would send; the caller clears it.
static void make_info(const struct job *job, struct job_info *ret)
{
    const struct space_candidate *c = job->candidate;

    message_init(&job_info_message, ret);
    ret->job = job->number;
    ret->kind = job->kind;
    ret->state = JOB_DONE;
    if (c && job->kind == JOB_COMPILE) {
        ret->compiled = xmalloc(sizeof(*ret->compiled));
        if (c->compiled) {
            message_copy(&compiled_message, ret->compiled, c->compiled);
        } else { // it was measured, so it did compile
            message_init(&compiled_message, ret->compiled);
        }
    } else if (c && result_of(job)) {
        ret->result = xmalloc(sizeof(*ret->result));
        message_copy(&result_message, ret->result, result_of(job));
    } else {
        ret->state = JOB_BURIED;
        ret->reason = xstrdup("the space does not know what comes of it");
    }
}

// Gives back what a running job holds.
static void leave(struct sim_daemon *sim_daemon, const struct job *job)
{
    *(job->kind == JOB_COMPILE ? &sim_daemon->compiling : &sim_daemon->measuring) -= 1;
}

static void on_done(void *owner, uint64_t tag)
{
    struct job *job = owner;
    struct sim_daemon *sim_daemon = (struct sim_daemon *)(uintptr_t)tag;

    if (!job->cancelled) {
        leave(sim_daemon, job);
    }
    DL_DELETE(sim_daemon->running, job);
    if (job->search) {
        struct job_info info;

        make_info(job, &info);
        job->callback(job->owner, job->tag, (struct job_ref){.job = job->number}, &info, NULL);
        message_clear(&job_info_message, &info);
    }
    free(job);
    serve(sim_daemon);
}

static void start(struct sim_daemon *sim_daemon, struct job *job, double seconds)
{
    *(job->kind == JOB_COMPILE ? &sim_daemon->compiling : &sim_daemon->measuring) += 1;
    DL_APPEND(sim_daemon->running, job);
    sim_after(sim_daemon->sim, seconds, on_done, job, (uint64_t)(uintptr_t)sim_daemon);
}

// --- scheduling

// Returns the search with waiting measurements that has used the least device time.
static struct sim_daemon_search *neediest(const struct sim_daemon *sim_daemon)
{
    struct sim_daemon_search *search, *found = NULL;

    DL_FOREACH (sim_daemon->searches, search) {
        if (search->waiting && (!found || search->used < found->used)) {
            found = search;
        }
    }
    return found;
}

static double compile_seconds(const struct job *job)
{
    const struct compiled *compiled = job->candidate ? job->candidate->compiled : NULL;

    return compiled && compiled->seconds > COMPILE_LEAST_S ? compiled->seconds : COMPILE_LEAST_S;
}

static double measure_seconds(const struct job *job)
{
    double held = job->candidate ? run_state_held_seconds(result_of(job)) : 0;

    return fmax(held, MEASURE_LEAST_S);
}

static void serve(struct sim_daemon *sim_daemon)
{
    while (sim_daemon->compiling < sim_daemon->config.compile_slots && sim_daemon->to_compile) {
        struct job *job = sim_daemon->to_compile;

        DL_DELETE(sim_daemon->to_compile, job);
        start(sim_daemon, job, compile_seconds(job));
    }
    struct sim_daemon_search *search;
    while (sim_daemon->measuring < sim_daemon->config.devices && (search = neediest(sim_daemon))) {
        struct job *job = search->waiting;
        double seconds = measure_seconds(job);

        DL_DELETE(search->waiting, job);
        search->used += seconds;
        start(sim_daemon, job, seconds);
    }
}

static int by_urgency(const struct job *a, const struct job *b)
{
    if (a->priority != b->priority) {
        return a->priority < b->priority ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

static struct sim_daemon_search *search_of(const struct job_service *peer)
{
    return (struct sim_daemon_search *)((uintptr_t)peer - offsetof(struct sim_daemon_search, jobs));
}

static void submit(struct job_service *peer, const char *key, const struct job_spec *spec,
                   uint64_t priority, job_service_callback *callback, void *owner, uint64_t tag)
{
    struct sim_daemon_search *search = search_of(peer);
    struct sim_daemon *sim_daemon = search->sim_daemon;
    struct job *job = xcalloc(1, sizeof(*job));

    *job = (struct job){.search = search,
                        .number = ++sim_daemon->jobs,
                        .kind = (enum job_kind)spec->kind,
                        .record = spec->fresh,
                        .candidate = recorded_space_find(search->recorded, &spec->candidate),
                        .priority = priority,
                        .callback = callback,
                        .owner = owner,
                        .tag = tag};
    (void)snprintf(job->key, sizeof(job->key), "%s", key);
    if (job->kind == JOB_COMPILE) {
        DL_APPEND(sim_daemon->to_compile, job);
    } else {
        DL_INSERT_INORDER(search->waiting, job, by_urgency);
    }
    serve(sim_daemon);
}

static struct job *find(struct job *list, const struct sim_daemon_search *search, const char *key)
{
    struct job *job;

    DL_FOREACH (list, job) {
        if (job->search == search && strcmp(job->key, key) == 0) {
            return job;
        }
    }
    return NULL;
}

// What runs is ended, as a daemon does. Its event comes all the same, and frees it.
static void cancel(struct job_service *peer, const char *key)
{
    struct sim_daemon_search *search = search_of(peer);
    struct sim_daemon *sim_daemon = search->sim_daemon;
    struct job **lists[] = {&search->waiting, &sim_daemon->to_compile}, *job;

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if ((job = find(*lists[i], search, key))) {
            DL_DELETE(*lists[i], job);
            free(job);
            return;
        }
    }
    if ((job = find(sim_daemon->running, search, key))) {
        job->search = NULL;
        job->cancelled = true;
        leave(sim_daemon, job);
        serve(sim_daemon);
    }
}

static void ack(struct job_service *peer, struct job_ref ref)
{
    (void)peer;
    (void)ref;
}

static const char *where(const struct job_service *peer, struct job_ref ref)
{
    (void)peer;
    (void)ref;
    return NULL;
}

struct sim_daemon_search *sim_daemon_search_create(struct sim_daemon *sim_daemon,
                                                   const struct recorded_space *recorded)
{
    struct sim_daemon_search *search = xcalloc(1, sizeof(*search));

    search->jobs =
        (struct job_service){.submit = submit, .cancel = cancel, .ack = ack, .where = where};
    search->sim_daemon = sim_daemon;
    search->recorded = recorded;
    DL_APPEND(sim_daemon->searches, search);
    return search;
}

struct job_service *sim_daemon_search_jobs(struct sim_daemon_search *search)
{
    return &search->jobs;
}
