// Design note. A run begins with three operations at the same time: the blobs are read, the ledger
// is told that the job is RUNNING (so that a crash counts as an attempt), and the result cache is
// asked, because an equal job may have been measured since this one was submitted. When all three
// have come back the plan is written and the executor started. The seed is drawn then, after the
// candidate is fixed.
//
//   PREPARING --all came back--> EXECUTING --outcome or failure--> end
//
// A cancelled run has no job. It stops at the next point where it can, and ends as RUN_CANCELLED.
// If the ledger cannot take the RUNNING mark (a full disk), the measurement goes on.
//
// What the executor says about device, class, digests, seed and attempt is overwritten by what the
// daemon knows.
#include "daemon/run/measure.h"
#include "common/clock.h"
#include "common/stats.h"
#include "daemon/run/job_cache.h"
#include "daemon/run/measure_inside.h"
#include "daemon/run/setup.h"
#include "daemon/store/cache.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Unused processes of each GPU. There are two, so that one is left for the next search when a crash
// has used up the other.
#define PRESTARTED_UNUSED 2

static void run_free(struct run *run)
{
    for (size_t i = 0; i < RUN_BLOB_COUNT; i++) {
        bytes_clear(&run->blob[i]);
    }
    if (run->has_outcome) {
        message_clear(&measure_outcome_message, &run->outcome);
    }
    bytes_clear(&run->cached);
    free(run->tenant);
    free(run->search_name);
    free(run->path);
    free(run);
}

// Releases the device, charges queue and account, tells the owner and frees the run.
static void finish(struct run *run, enum run_outcome outcome)
{
    struct run_end *end = &run->end;
    uint64_t now_ns = clock_now_ns(run->parts->clock);
    struct queue *queue = run->device->device_class->queue;

    end->outcome = run->job ? outcome : RUN_CANCELLED;
    end->reason = run->reason;
    end->device = run->device;
    end->tenant = run->tenant;
    end->search = run->search_name;
    if (run->device->job != 0) {
        end->held_s = device_release(run->device, now_ns);
    }
    // A search does not pay for what was lost or was not measured after all. It pays for the last
    // attempt of a job that loses every executor, because the candidate is at fault then.
    bool free_of_charge = outcome == RUN_CACHED || outcome == RUN_NO_OBJECT ||
                          outcome == RUN_DISTURBED || outcome == RUN_NO_START ||
                          outcome == RUN_TOO_LARGE ||
                          (outcome == RUN_LOST && run->job && run->attempt + 1 < JOB_LOST_MAX);
    queue_finish(queue, &run->grant, end->held_s, free_of_charge);
    account_finish(run->parts->accounts, &run->reservation, end->held_s, free_of_charge,
                   clock_seconds(now_ns));
    if (outcome == RUN_LOST) {
        (void)device_failed(run->device, run->id, run->reason, now_ns);
    }
    if (run->job) {
        run->job->run = NULL;
    }
    run->events->on_end(run->events->owner, run->job, end);
    run_free(run);
}

// A result has the A/A control of this run or else the last one for the same problem and baseline.
// The control of a disturbed run says nothing about the device. Returns whether the result may
// answer equal jobs.
static bool take_control(struct run *run, bool disturbed, struct result *result)
{
    struct device *device = run->device;

    if (result->control) {
        return !disturbed && device_add_control(device, &run->pair, result->control,
                                                clock_now_ns(run->parts->clock));
    }
    const struct estimate *last = device_last_control(device, &run->pair);
    if (last) {
        result->control = xmalloc(sizeof(*result->control));
        message_copy(&estimate_message, result->control, last);
    }
    return !disturbed && device->bad_controls == 0;
}

// Whether the times may be wrong and the job may be measured again. What a candidate computes does
// not depend on what else runs.
static bool is_spoilt(const struct run *run, bool disturbed, const struct result *result)
{
    return disturbed && run->disturbed + 1 < MEASURE_DISTURBED_MAX &&
           (verdict_is_ratio(result->verdict) || result->verdict == VERDICT_TIMEOUT);
}

static void on_executor_end(void *owner, struct executor_end *end)
{
    struct run *run = owner;
    struct result *result = run->has_outcome ? run->outcome.result : NULL;
    bool disturbed = device_was_disturbed(run->device);

    run->executor = NULL;
    if (end->stuck) { // the outcome may have come before
        run->end.held_s = device_release(run->device, clock_now_ns(run->parts->clock));
        device_lose(run->device, true, end->reason);
    }
    if (!end->ok || !result) {
        (void)snprintf(run->reason, sizeof(run->reason), "%s",
                       end->ok ? run->unread.text : end->reason);
        finish(run, end->stopped ? RUN_CANCELLED : RUN_LOST);
        return;
    }
    device_succeeded(run->device);
    if (is_spoilt(run, disturbed, result)) {
        (void)snprintf(run->reason, sizeof(run->reason), "%s", run->device->disturbance);
        finish(run, RUN_DISTURBED);
        return;
    }
    measure_fill_result(run, disturbed, result);
    // The device is released first, because a bad control may take it out of service.
    if (!end->stuck) {
        run->end.held_s = device_release(run->device, clock_now_ns(run->parts->clock));
    }
    run->end.cacheable = take_control(run, disturbed, result);
    run->end.result = result;
    finish(run, RUN_RESULT);
}

static struct bytes pack_plan(struct run *run)
{
    const struct device_class *device_class = run->device->device_class;
    struct measure_plan plan;

    message_init(&measure_plan_message, &plan);
    plan.problem = bytes_take(&run->blob[RUN_BLOB_PROBLEM]);
    plan.reference = bytes_take(&run->blob[RUN_BLOB_REFERENCE]);
    plan.baseline = bytes_take(&run->blob[RUN_BLOB_BASELINE]);
    plan.candidate = bytes_take(&run->blob[RUN_BLOB_CANDIDATE]);
    plan.seed = run->seed;
    plan.core = run->device->core >= 0 ? (uint64_t)run->device->core : 0;
    plan.anchor_log2 = run->anchor_log2;
    plan.precision_log2 = run->precision_log2;
    plan.max_launches = run->max_launches;
    plan.max_seconds = run->max_seconds;
    plan.launch_seconds = MEASURE_LAUNCH_SECONDS;
    plan.max_memory = MEASURE_MEMORY;
    plan.control = run->control;
    plan.sandbox_off = run->parts->limits.sandbox_off;
    plan.peak_flops = device_class->peak_flops;
    plan.peak_bytes = device_class->peak_bytes;
    if (device_is_gpu(run->device)) {
        plan.hidden_seed = run->hidden_seed;
        plan.facts = xcalloc(device_class->facts_count + 1, sizeof(*plan.facts));
        for (size_t i = 0; i < device_class->facts_count; i++) {
            message_copy(&fact_message, &plan.facts[plan.facts_count++], &device_class->facts[i]);
        }
    }
    struct bytes packed = cache_pack(&measure_plan_message, &plan);
    message_clear(&measure_plan_message, &plan);
    return packed;
}

// May run on another thread. Returns true, so that the process is not used again, if the outcome
// cannot be true or the process wants to end.
static bool read_outcome(void *owner, const struct bytes *packed)
{
    struct run *run = owner;

    run->unread = (struct err)ERR_INIT;
    run->has_outcome =
        outcome_read_measure(&run->outcome, packed, &run->expected, &run->unread) == 0;
    return !run->has_outcome || run->outcome.retire;
}

// How kcast-exec is run. Processes for a GPU stay, because they hold its context.
static struct executor_config executor_of(const struct daemon_limits *limits,
                                          const struct device *device)
{
    bool gpu = device_is_gpu(device);

    return (struct executor_config){
        .mode = gpu ? "cuda-measure" : "measure",
        .argument = gpu ? device->uuid : NULL,
        .outcome_max = MEASURE_OUTCOME_MAX,
        .grace_ms = limits->grace_ms,
        .limits = {.memory = MEASURE_GROUP_MEMORY, .processes = MEASURE_GROUP_PROCESSES},
        .read = read_outcome,
        .on_end = on_executor_end,
    };
}

void run_prestart(const struct daemon_parts *parts, const struct device *device)
{
    struct executor_config unused = executor_of(&parts->limits, device);

    executors_prestart(parts->executors, &unused, PRESTARTED_UNUSED);
}

static void execute(struct run *run)
{
    // The time of the timing, twice with a control. The slack has room for verification.
    double timing_s = run->max_seconds * (run->control ? 2 : 1);
    struct executor_config config = executor_of(&run->parts->limits, run->device);

    config.deadline_ms = (uint64_t)(timing_s * 1000) + run->parts->limits.slack_ms;
    config.keep = device_is_gpu(run->device) ? run->path : NULL;
    config.fresh = run->fresh;
    config.owner = run;
    run->events->on_started(run->events->owner, run->job);
    run->seed = stats_entropy();
    struct bytes plan = pack_plan(run);
    if (!plan.data) {
        (void)snprintf(run->reason, sizeof(run->reason),
                       "problem and objects are too large to be sent to an executor");
        finish(run, RUN_TOO_LARGE);
        return;
    }
    struct err err = ERR_INIT;
    if (executor_start(&run->executor, run->parts->executors, &config, &plan, &err) != 0) {
        (void)snprintf(run->reason, sizeof(run->reason), "%s", err.text);
        finish(run, RUN_NO_START);
    }
}

// One of the three operations has come back.
static void prepared(struct run *run)
{
    if (--run->pending > 0) {
        return;
    }
    if (!run->job) {
        finish(run, RUN_CANCELLED);
    } else if (run->cached.data) {
        run->end.cached = &run->cached;
        finish(run, RUN_CACHED);
    } else if (run->host_failed) {
        finish(run, RUN_NO_START);
    } else if (run->failed) {
        finish(run, RUN_NO_OBJECT);
    } else {
        execute(run);
    }
}

static void on_blobs(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                     size_t count)
{
    struct run *run = owner;

    if (error && error->code == ERR_BUSY) {
        run->host_failed = true;
        executors_hold(run->parts->executors);
    }
    if (error) {
        run->failed = true;
        run->end.blob = failed;
        (void)snprintf(run->reason, sizeof(run->reason), "%s", error->text);
    }
    for (size_t i = 0; i < count && !error; i++) {
        run->blob[i] = bytes_take(&blobs[i]);
    }
    prepared(run);
}

static void on_marked(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    (void)error;
    (void)answer;
    (void)count;
    prepared(owner);
}

static void on_cached(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct run *run = owner;

    if (!error && count > 0) {
        run->cached = bytes_take(&answer[0]);
    }
    prepared(run);
}

static void look_into_cache(struct run *run, const struct job *job)
{
    struct digest key = job_cache_key(job, run->parts->limits.sandbox_off);
    struct bytes question = job_cache_question(job);

    ledger_read_cached(run->parts->ledger, &key, &question, cache_adopt, on_cached, run);
    bytes_clear(&question);
}

static struct run *new_run(const struct daemon_parts *parts, const struct run_events *events,
                           struct job *job, struct device *device, const struct queue_grant *grant)
{
    struct run *run = xcalloc(1, sizeof(*run));
    const struct setup *setup = job->setup;

    run->parts = parts;
    run->events = events;
    run->job = job;
    run->id = job->id;
    run->device = device;
    run->grant = *grant;
    account_reserve(&run->reservation, job->search->account, grant->fair.charged);
    run->tenant = xstrdup(job->search->tenant);
    run->search_name = xstrdup(job->search->name);
    run->path = xstrdup(job->search->path);
    run->hidden_seed = setup_hidden_seed(setup, &job->candidate);
    run->fresh = job->fresh;
    run->expected = (struct measure_expectation){
        .problem = setup->problem,
        .candidate = job->candidate,
        .precision_log2 = isnan(job->precision_log2) ? CACHE_PRECISION_LOG2 : job->precision_log2,
        .sandbox_off = parts->limits.sandbox_off,
    };
    run->pair = device_control_pair(&setup->problem, &setup->baseline.source);
    run->anchor_log2 = job->anchor_log2;
    run->precision_log2 = job->precision_log2;
    run->max_launches = job->max_launches;
    run->max_seconds = isnan(job->max_seconds) ? CACHE_CAP_S : job->max_seconds;
    run->compile_seconds = (double)job->compile_seconds;
    run->attempt = job->attempt;
    run->disturbed = job->disturbed;
    return run;
}

void run_start(const struct daemon_parts *parts, const struct run_events *events, struct job *job,
               struct device *device, const struct queue_grant *grant)
{
    struct run *run = new_run(parts, events, job, device, grant);
    const struct setup *setup = job->setup;
    struct digest blobs[RUN_BLOB_COUNT] = {
        [RUN_BLOB_PROBLEM] = setup->problem,
        [RUN_BLOB_REFERENCE] = setup->reference.object,
        [RUN_BLOB_BASELINE] = setup->baseline.object,
        [RUN_BLOB_CANDIDATE] = job->object,
    };
    uint64_t now_ns = clock_now_ns(run->parts->clock);
    double waited = clock_seconds(now_ns - job->submitted_ns) - run->compile_seconds;

    run->queue_seconds = waited > 0 ? waited : 0;
    run->control = device_needs_control(device, &run->pair, now_ns);
    device_hold(device, job->id, now_ns);
    job->run = run;
    run->pending = job->fresh ? 2 : 3;
    blob_load(parts->blobs, blobs, RUN_BLOB_COUNT, on_blobs, run);
    ledger_move(parts->ledger, job->id, JOB_RUNNING, job->attempt, on_marked, run);
    if (!job->fresh) {
        look_into_cache(run, job);
    }
}

void run_charge(struct run *run)
{
    uint64_t now_ns = clock_now_ns(run->parts->clock);
    double held_s = clock_seconds(now_ns - run->device->since_ns);

    if (run->device->job == run->id) {
        queue_refresh(run->device->device_class->queue, &run->grant, held_s);
        account_charge(&run->reservation, held_s, clock_seconds(now_ns));
    }
}

void run_cancel(struct job *job)
{
    struct run *run = job->run;

    if (run) {
        job->run = NULL;
        run->job = NULL;
        if (run->executor) {
            executor_stop(run->executor);
        }
    }
}

const struct device *run_device(const struct run *run)
{
    return run->device;
}
