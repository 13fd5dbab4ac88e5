#include "replay/lab.h"
#include "client/fold.h"
#include "common/mem.h"
#include "contract/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <utlist.h>

#define COMPILE_LEAST_S 0.001 // of a compilation whose length is not known
#define MEASURE_LEAST_S 0.001

struct job {
    struct lab_search *search; // NULL once that is gone
    uint64_t number;
    enum job_kind kind;
    bool record; // a second measurement
    const struct space_candidate *candidate; // NULL: not known
    uint64_t priority;
    pool_callback *callback;
    void *owner;
    uint64_t tag;
    struct job *prev, *next;
};

struct lab_search {
    struct lab *lab;
    const struct catalogue *catalogue;
    struct job *waiting; // list: measurements, most urgent first
    double used;         // device-seconds
    struct lab_search *prev, *next;
};

struct lab {
    struct sim *sim;
    struct lab_config config;
    unsigned measuring, compiling;
    uint64_t jobs;
    struct job *to_compile; // list
    struct job *running;    // list: on devices and in compile slots
    struct lab_search *searches; // list
};

struct lab *lab_create(struct sim *sim, const struct lab_config *config)
{
    struct lab *lab = xcalloc(1, sizeof(*lab));

    lab->sim = sim;
    lab->config = *config;
    return lab;
}

static void free_jobs(struct job **list)
{
    struct job *job, *next;

    DL_FOREACH_SAFE (*list, job, next) {
        DL_DELETE(*list, job);
        free(job);
    }
}

void lab_free(struct lab *lab)
{
    if (lab != NULL) {
        free_jobs(&lab->to_compile);
        free_jobs(&lab->running);
        free(lab);
    }
}

struct lab_search *lab_search_create(struct lab *lab, const struct catalogue *catalogue)
{
    struct lab_search *search = xcalloc(1, sizeof(*search));

    search->lab = lab;
    search->catalogue = catalogue;
    DL_APPEND(lab->searches, search);
    return search;
}

void lab_search_free(struct lab_search *search)
{
    struct job *job, *next;

    if (search == NULL) {
        return;
    }
    free_jobs(&search->waiting);
    DL_FOREACH_SAFE (search->lab->to_compile, job, next) {
        if (job->search == search) {
            DL_DELETE(search->lab->to_compile, job);
            free(job);
        }
    }
    DL_FOREACH (search->lab->running, job) {
        job->search = job->search == search ? NULL : job->search;
    }
    DL_DELETE(search->lab->searches, search);
    free(search);
}

static void serve(struct lab *lab);

// ---- the end of a job ----

static const struct result *result_of(const struct job *job)
{
    const struct space_candidate *c = job->candidate;

    return job->record && c->record != NULL ? c->record : c->result;
}

// What the daemon would say. Owns what it points to.
static void make_info(const struct job *job, struct job_info *ret)
{
    const struct space_candidate *c = job->candidate;

    message_init(&job_info_message, ret);
    ret->job = job->number;
    ret->kind = job->kind;
    ret->state = JOB_DONE;
    if (c != NULL && job->kind == JOB_COMPILE) {
        ret->compiled = xmalloc(sizeof(*ret->compiled));
        if (c->compiled != NULL) {
            message_copy(&compiled_message, ret->compiled, c->compiled);
        } else { // known to have been measured
            message_init(&compiled_message, ret->compiled);
        }
    } else if (c != NULL && result_of(job) != NULL) {
        ret->result = xmalloc(sizeof(*ret->result));
        message_copy(&result_message, ret->result, result_of(job));
    } else {
        ret->state = JOB_BURIED;
        ret->reason = xstrdup("the space does not know what comes of it");
    }
}

static void on_done(void *owner, uint64_t tag)
{
    struct job *job = owner;
    struct lab *lab = (struct lab *)(uintptr_t)tag;

    *(job->kind == JOB_COMPILE ? &lab->compiling : &lab->measuring) -= 1;
    DL_DELETE(lab->running, job);
    if (job->search != NULL) {
        struct job_info info;

        make_info(job, &info);
        job->callback(job->owner, job->tag, &info, NULL);
        message_clear(&job_info_message, &info);
    }
    free(job);
    serve(lab);
}

static void start(struct lab *lab, struct job *job, double seconds)
{
    *(job->kind == JOB_COMPILE ? &lab->compiling : &lab->measuring) += 1;
    DL_APPEND(lab->running, job);
    sim_after(lab->sim, seconds, on_done, job, (uint64_t)(uintptr_t)lab);
}

// ---- whose turn it is ----

static struct lab_search *neediest(const struct lab *lab)
{
    struct lab_search *search, *found = NULL;

    DL_FOREACH (lab->searches, search) {
        if (search->waiting != NULL && (found == NULL || search->used < found->used)) {
            found = search;
        }
    }
    return found;
}

static double compile_seconds(const struct job *job)
{
    const struct compiled *compiled =
        job->candidate != NULL ? job->candidate->compiled : NULL;

    return compiled != NULL && compiled->seconds > COMPILE_LEAST_S ? compiled->seconds
                                                                   : COMPILE_LEAST_S;
}

static double measure_seconds(const struct job *job)
{
    double held = job->candidate != NULL ? fold_held_seconds(result_of(job)) : 0;

    return fmax(held, MEASURE_LEAST_S);
}

static void serve(struct lab *lab)
{
    struct lab_search *search;

    while (lab->compiling < lab->config.compile_slots && lab->to_compile != NULL) {
        struct job *job = lab->to_compile;

        DL_DELETE(lab->to_compile, job);
        start(lab, job, compile_seconds(job));
    }
    while (lab->measuring < lab->config.devices && (search = neediest(lab)) != NULL) {
        struct job *job = search->waiting;
        double seconds = measure_seconds(job);

        DL_DELETE(search->waiting, job);
        search->used += seconds;
        start(lab, job, seconds);
    }
}

static int by_urgency(const struct job *a, const struct job *b)
{
    if (a->priority != b->priority) {
        return a->priority < b->priority ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

void lab_submit(struct lab_search *search, const struct job_spec *spec, uint64_t priority,
                pool_callback *callback, void *owner, uint64_t tag)
{
    struct lab *lab = search->lab;
    struct job *job = xcalloc(1, sizeof(*job));

    *job = (struct job){.search = search,
                        .number = ++lab->jobs,
                        .kind = (enum job_kind)spec->kind,
                        .record = spec->fresh,
                        .candidate = catalogue_find(search->catalogue, &spec->candidate),
                        .priority = priority,
                        .callback = callback,
                        .owner = owner,
                        .tag = tag};
    if (job->kind == JOB_COMPILE) {
        DL_APPEND(lab->to_compile, job);
    } else {
        DL_INSERT_INORDER(search->waiting, job, by_urgency);
    }
    serve(lab);
}
