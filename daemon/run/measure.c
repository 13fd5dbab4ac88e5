// Design note. A run needs three things before its executor can begin: the blobs, an answer of the
// result cache, because an equal job may have been measured since this one was submitted, and a
// device. The first two are got ahead by measure_ahead.c while the device measures something else,
// where the scheduler has seen that the job is next in line; else they are got now, with the device
// kept for the run. When all is there the executor is started:
//
//   run_prepare ─▶ AHEAD ──run_start──▶ PREPARING ──all there──▶ EXECUTING ──outcome or failure──▶
//   end
//                    └───run_forget──▶ (freed)       run_start of a job that was not prepared ┘
//
// The ledger is told that the job is RUNNING, so that a crash counts as an attempt. A job that is
// only prepared is not RUNNING, so a crash then is none. On a GPU the executor is started while the
// ledger writes, so that between two plans the GPU waits for no disk: what a crash of the host
// within those milliseconds loses is one attempt, of a job that has had none. A job that has come
// through a restart or lost an executor waits until the mark is written, and so does a job on a
// core, whose process has to be started anyway; so a job that takes the host down does so once
// uncounted.
//
// The device is kept for the run (device_lease) from run_start, but it counts as held, and the
// search is charged, only from when a process is ready and has the plan (on_plan).
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

// Unused processes of each GPU, beside those that measure for somebody: one takes over when such a
// process is lost, and one is there for whoever must have a new one meanwhile.
#define PRESTARTED_UNUSED 2
// Seconds in which the interpreter of an unsealed candidate has started, or the executor says that
// it does not (executor/gpu/record/recorder.c).
#define UNSEALED_START_SECONDS 180.0

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
                          outcome == RUN_DISTURBED || outcome == RUN_DOUBTFUL ||
                          outcome == RUN_NO_START || outcome == RUN_TOO_LARGE ||
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
    measure_run_free(run);
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
    if (run->outcome.doubtful && !run->doubted) {
        (void)snprintf(run->reason, sizeof(run->reason), "%s",
                       result->reason ? result->reason : "");
        finish(run, RUN_DOUBTFUL);
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

// The process is ready and has the plan: now the job holds the device.
static void on_plan(void *owner)
{
    struct run *run = owner;

    device_hold(run->device, run->id, clock_now_ns(run->parts->clock));
}

// How kcast-exec is run. Processes for a GPU stay, because they hold its context.
static struct executor_config executor_of(const struct daemon_limits *limits,
                                          const struct device *device)
{
    bool gpu = device_is_gpu(device);

    return (struct executor_config){
        .mode = gpu ? "cuda-measure" : "measure",
        .argument = gpu ? device->uuid : NULL,
        .on_device = gpu,
        .outcome_max = MEASURE_OUTCOME_MAX,
        .grace_ms = limits->grace_ms,
        .limits = {.memory = MEASURE_GROUP_MEMORY,
                   .processes = gpu ? MEASURE_GROUP_PROCESSES_GPU : MEASURE_GROUP_PROCESSES},
        .on_plan = on_plan,
        .read = read_outcome,
        .on_end = on_executor_end,
    };
}

void run_prestart(const struct daemon_parts *parts, const struct device *device,
                  prestarted_first *on_first, void *owner)
{
    struct executor_config unused = executor_of(&parts->limits, device);

    executors_prestart(parts->executors, &unused, PRESTARTED_UNUSED, on_first, owner);
}

bool run_would_wait(const struct daemon_parts *parts, const struct device *device)
{
    struct executor_config unused = executor_of(&parts->limits, device);

    return device_is_gpu(device) && executors_is_starting(parts->executors, &unused);
}

// Which runs may have the same process of a GPU.
static const char *group_of(const struct run *run)
{
    switch (run->parts->limits.share_processes) {
    case SHARE_PROCESSES_ALL:
        return "*";
    case SHARE_PROCESSES_SEARCH:
        return run->path;
    case SHARE_PROCESSES_TENANT:
        break;
    }
    return run->tenant;
}

static void execute(struct run *run)
{
    const struct daemon_parts *parts = run->parts;
    // The time of the timing, twice with a control. The slack has room for verification.
    double timing_s = run->max_seconds * (run->control ? 2 : 1);
    if (run->unsealed) { // its interpreter and its host code
        timing_s += UNSEALED_START_SECONDS + (double)parts->limits.compile_seconds;
    }
    struct executor_config config = executor_of(&parts->limits, run->device);

    config.deadline_ms = (uint64_t)(timing_s * 1000) + parts->limits.slack_ms;
    config.keep = device_is_gpu(run->device) ? group_of(run) : NULL;
    config.fresh = run->fresh;
    config.owner = run;
    run->events->on_started(run->events->owner, run->job);
    struct bytes plan = measure_pack(run);
    if (!plan.data) {
        (void)snprintf(run->reason, sizeof(run->reason),
                       "problem and objects are too large to be sent to an executor");
        finish(run, RUN_TOO_LARGE);
        return;
    }
    if (!run->marked) {
        ledger_move(parts->ledger, run->id, JOB_RUNNING, run->attempt, NULL, NULL);
    }
    struct err err = ERR_INIT;
    if (executor_start(&run->executor, parts->executors, &config, &plan, &err) != 0) {
        (void)snprintf(run->reason, sizeof(run->reason), "%s", err.text);
        finish(run, RUN_NO_START);
    }
}

void measure_go_on(struct run *run)
{
    if (!run->job) {
        finish(run, RUN_CANCELLED);
    } else if (run->cached.data) {
        run->end.cached = &run->cached;
        finish(run, RUN_CACHED);
    } else if (run->host_failed) {
        executors_hold(run->parts->executors);
        finish(run, RUN_NO_START);
    } else if (run->failed) {
        finish(run, RUN_NO_OBJECT);
    } else {
        execute(run);
    }
}

// Whether the run waits until the ledger has its RUNNING mark.
static bool waits_for_mark(const struct job *job, const struct device *device)
{
    return !device_is_gpu(device) || job->restarted || job->attempt > 0;
}

static void lease(struct run *run, const struct run_events *events, struct device *device,
                  const struct queue_grant *grant)
{
    struct job *job = run->job;
    uint64_t now_ns = clock_now_ns(run->parts->clock);
    double waited = clock_seconds(now_ns - job->submitted_ns) - run->compile_seconds;

    run->events = events;
    run->device = device;
    run->grant = *grant;
    account_reserve(&run->reservation, job->search->account, grant->fair.charged);
    run->attempt = job->attempt;
    run->disturbed = job->disturbed;
    run->doubted = job->doubted;
    run->queue_seconds = waited > 0 ? waited : 0;
    run->control = device_needs_control(device, &run->pair, now_ns);
    device_lease(device, job->id, now_ns);
    job->run = run;
}

void run_start(const struct daemon_parts *parts, const struct run_events *events, struct job *job,
               struct device *device, const struct queue_grant *grant)
{
    struct run *run = measure_take_ahead(job);
    bool prepared = run;

    run = run ? run : measure_run_new(parts, job);
    lease(run, events, device, grant);
    if (!prepared) {
        measure_read(run);
    }
    if (waits_for_mark(job, device)) {
        measure_mark(run);
    }
    if (run->pending == 0) {
        measure_go_on(run);
    }
}

void run_charge(struct run *run)
{
    uint64_t now_ns = clock_now_ns(run->parts->clock);
    double held_s = clock_seconds(device_job_ns(run->device, now_ns));

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
