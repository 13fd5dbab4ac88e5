// What a run needs besides a device: its blobs, an answer of the result cache, its packed plan. It
// is got ahead, or when the run has a device already.
//
// Design note. Up to three operations are under way for a run: the blobs, the question to the
// cache, and the RUNNING mark in the ledger. `pending` counts them, and when the last one has come
// back, the run goes on with its device, or, without one, its plan is packed and it waits. A run
// that is forgotten meanwhile has neither job nor device and is freed then.
//
// What went wrong ahead is not believed later: such a run is dropped, and everything is read again
// when the job has a device. The answer of the cache may be too old: whoever learns of a new result
// has equal runs ask again (run_ask_again).
#include "common/stats.h"
#include "daemon/run/job_cache.h"
#include "daemon/run/measure_inside.h"
#include "daemon/run/setup.h"
#include "daemon/store/cache.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Whether the job's candidate has become an object that runs unsealed.
static bool is_unsealed(const struct job *job)
{
    struct compiled compiled;

    if (!job->unsealed) {
        return false;
    }
    job_read_compiled(job, &compiled);
    bool unsealed = compiled.unsealed;
    message_clear(&compiled_message, &compiled);
    return unsealed;
}

struct run *measure_run_new(const struct daemon_parts *parts, struct job *job)
{
    struct run *run = xcalloc(1, sizeof(*run));
    const struct setup *setup = job->setup;

    run->parts = parts;
    run->job = job;
    run->id = job->id;
    run->device_class = job->device_class;
    run->tenant = xstrdup(job->search->tenant);
    run->search_name = xstrdup(job->search->name);
    run->path = xstrdup(job->search->path);
    run->hidden_seed = setup_hidden_seed(setup, &job->candidate);
    run->fresh = job->fresh;
    run->unsealed = is_unsealed(job);
    run->expected = (struct measure_expectation){
        .problem = setup->problem,
        .candidate = job->candidate,
        .precision_log2 = isnan(job->precision_log2) ? CACHE_PRECISION_LOG2 : job->precision_log2,
        .sandbox_off = parts->limits.sandbox_off,
        .unsealed = run->unsealed,
    };
    run->pair = device_control_pair(&setup->problem, &setup->baseline.source);
    run->anchor_log2 = job->anchor_log2;
    run->precision_log2 = job->precision_log2;
    run->max_launches = job->max_launches;
    run->max_seconds = isnan(job->max_seconds) ? CACHE_CAP_S : job->max_seconds;
    run->compile_seconds = (double)job->compile_seconds;
    return run;
}

void measure_run_free(struct run *run)
{
    for (size_t i = 0; i < RUN_BLOB_COUNT; i++) {
        bytes_clear(&run->blob[i]);
    }
    if (run->has_outcome) {
        message_clear(&measure_outcome_message, &run->outcome);
    }
    bytes_clear(&run->packed);
    bytes_clear(&run->cached);
    free(run->tenant);
    free(run->search_name);
    free(run->path);
    free(run);
}

// --- the plan

// Fills the plan with what does not depend on the device. Takes the blobs.
static void fill_plan(struct run *run, struct measure_plan *plan)
{
    const struct device_class *device_class = run->device_class;
    const struct daemon_limits *limits = &run->parts->limits;

    plan->problem = bytes_take(&run->blob[RUN_BLOB_PROBLEM]);
    plan->reference = bytes_take(&run->blob[RUN_BLOB_REFERENCE]);
    plan->baseline = bytes_take(&run->blob[RUN_BLOB_BASELINE]);
    plan->candidate = bytes_take(&run->blob[RUN_BLOB_CANDIDATE]);
    run->seed = stats_entropy() >> 1; // 63 bits, so that it is an integer of any JSON library
    plan->seed = run->seed;
    plan->anchor_log2 = run->anchor_log2;
    plan->precision_log2 = run->precision_log2;
    plan->max_launches = run->max_launches;
    plan->max_seconds = run->max_seconds;
    plan->launch_seconds = MEASURE_LAUNCH_SECONDS;
    plan->max_memory = MEASURE_MEMORY;
    plan->sandbox_off = limits->sandbox_off;
    plan->peak_flops = device_class->peak_flops;
    plan->peak_bytes = device_class->peak_bytes;
    if (device_class->target) {
        plan->hidden_seed = run->hidden_seed;
        if (run->unsealed) {
            plan->python = limits->python ? xstrdup(limits->python) : NULL;
            plan->host_seconds = (double)limits->compile_seconds;
        }
        plan->facts =
            message_copy_all(&fact_message, device_class->facts, device_class->facts_count);
        plan->facts_count = device_class->facts_count;
    }
}

// The plan as any GPU of the class gets it that needs no control: nothing in it depends on which.
static void pack_ahead(struct run *run)
{
    struct measure_plan plan;

    message_init(&measure_plan_message, &plan);
    fill_plan(run, &plan);
    run->packed = cache_pack(&measure_plan_message, &plan);
    message_clear(&measure_plan_message, &plan);
    run->failed = !run->packed.data; // it is read again when it is needed
}

struct bytes measure_pack(struct run *run)
{
    bool as_it_is = run->packed.data && !run->control && run->device->core < 0;
    struct measure_plan plan;

    if (as_it_is) {
        return bytes_take(&run->packed);
    }
    message_init(&measure_plan_message, &plan);
    if (!run->packed.data) {
        fill_plan(run, &plan);
    } else if (message_read(&measure_plan_message, &plan, run->packed.data, run->packed.len,
                            NULL) != 0) {
        return (struct bytes){0}; // cannot be: it was packed here
    }
    plan.core = run->device->core >= 0 ? (uint64_t)run->device->core : 0;
    plan.control = run->control;
    struct bytes packed = cache_pack(&measure_plan_message, &plan);
    message_clear(&measure_plan_message, &plan);
    return packed;
}

// --- what comes back

// Everything has been read ahead. What is too large to be kept is read again when it is needed.
static void keep_ahead(struct run *run)
{
    size_t len = 0;

    for (size_t i = 0; i < RUN_BLOB_COUNT; i++) {
        len += run->blob[i].len;
    }
    if (len > MEASURE_AHEAD_MAX) {
        for (size_t i = 0; i < RUN_BLOB_COUNT; i++) {
            bytes_clear(&run->blob[i]);
        }
        run->failed = true;
    } else if (!run->failed && !run->packed.data && run->device_class->target) {
        pack_ahead(run);
    }
}

static void come_back(struct run *run)
{
    if (--run->pending > 0) {
        return;
    }
    if (run->on_back) {
        void (*on_back)(void *owner) = run->on_back;

        run->on_back = NULL;
        on_back(run->owner);
    }
    if (run->device) {
        measure_go_on(run);
    } else if (!run->job) {
        measure_run_free(run);
    } else {
        keep_ahead(run);
    }
}

static void on_blobs(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                     size_t count)
{
    struct run *run = owner;

    if (error) {
        run->host_failed = error->code == ERR_BUSY;
        run->failed = true;
        run->end.blob = failed;
        (void)snprintf(run->reason, sizeof(run->reason), "%s", error->text);
    }
    for (size_t i = 0; i < count && !error; i++) {
        run->blob[i] = bytes_take(&blobs[i]);
    }
    come_back(run);
}

static void on_marked(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    (void)error;
    (void)answer;
    (void)count;
    come_back(owner);
}

static void on_cached(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct run *run = owner;

    if (!error && count > 0 && answer[0].data) {
        bytes_clear(&run->cached);
        run->cached = bytes_take(&answer[0]);
    }
    come_back(run);
}

static void look_into_cache(struct run *run)
{
    struct bytes question = job_cache_question(run->job);

    run->pending++;
    ledger_read_cached(run->parts->ledger, &run->cache_key, &question, cache_adopt, on_cached, run);
    bytes_clear(&question);
}

void measure_read(struct run *run)
{
    const struct job *job = run->job;
    struct digest blobs[RUN_BLOB_COUNT] = {
        [RUN_BLOB_PROBLEM] = job->setup->problem,
        [RUN_BLOB_REFERENCE] =
            setup_records_reference(job->setup) ? job->reference : job->setup->reference.object,
        [RUN_BLOB_BASELINE] = job->setup->baseline.object,
        [RUN_BLOB_CANDIDATE] = job->object,
    };

    run->cache_key = run_cache_key(run->parts, job);
    run->pending++;
    blob_load(run->parts->blobs, blobs, RUN_BLOB_COUNT, on_blobs, run);
    if (!run->fresh) {
        look_into_cache(run);
    }
}

void measure_mark(struct run *run)
{
    run->marked = true;
    run->pending++;
    ledger_move(run->parts->ledger, run->id, JOB_RUNNING, run->attempt, on_marked, run);
}

// --- ahead

// Nobody needs the run any more.
static void drop(struct run *run)
{
    run->job = NULL;
    if (run->pending == 0) {
        measure_run_free(run);
    }
}

void run_prepare(const struct daemon_parts *parts, struct job *job, void (*on_back)(void *owner),
                 void *owner)
{
    struct run *run = measure_run_new(parts, job);

    run->on_back = on_back;
    run->owner = owner;
    job->ahead = run;
    measure_read(run);
}

void run_forget(struct job *job)
{
    struct run *run = job->ahead;

    if (run) {
        job->ahead = NULL;
        drop(run);
    }
}

struct run *measure_take_ahead(struct job *job)
{
    struct run *run = job->ahead;

    job->ahead = NULL;
    if (run && run->failed) {
        drop(run);
        run = NULL;
    }
    return run;
}

struct digest run_cache_key(const struct daemon_parts *parts, const struct job *job)
{
    return job_cache_key(job, parts->limits.sandbox_off);
}

void run_ask_again(struct job *job, const struct digest *cache_key)
{
    struct run *run = job->ahead;

    if (run && !run->fresh && digest_equal(&run->cache_key, cache_key)) {
        look_into_cache(run);
    }
}
