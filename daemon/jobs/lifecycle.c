// Design note. A job passes through these stages, in the order in which this file has them:
//
//   admit      submission.c or reload.c hands over a job that the ledger has. The job waits in the
//              preparation queue of scheduler.c.
//   prepare    The scheduler says that the job may be prepared. preparation.c reads its problem and
//              has its sources compiled by compiler.c.
//   queue      Everything is compiled. The job waits in the queue of its class of devices.
//   ahead      The scheduler sees that the job goes soon. measure.c reads what its run needs. This is
//              no stage of its own: the job stays in the queue.
//   measure    The scheduler has chosen a device. measure.c runs the job there.
//   complete   completion.c writes the end into the ledger and then wakes those who wait for it.
//
// Every stage begins here and calls back here; no stage knows the next one. A stage that fails
// either ends the job or sends it back: to the queue of its class when the executor was lost or the
// measurement was disturbed or doubtful, and to the preparation queue when a compiled object is
// missing. The job counts how often that happened (attempt, disturbed, doubted), and these counts
// are bounded.
//
// daemon/state/job.c has the states of a job. An unfinished job is at exactly one place: in a queue
// (`queued`), being prepared (`preparation`), on a device (`run`), or on its way into the ledger
// for the last time (`completing`). lifecycle_cancel takes it out of whichever it is.
//
// When a search or a tenant has used up its budget, its waiting jobs end as CANCELLED with a
// sentence that says so; running jobs are finished and charged. A budget per hour ends no job: its
// jobs stay in the queue until the hour has some budget again.
#include "daemon/jobs/lifecycle.h"
#include "common/log.h"
#include "common/mem.h"
#include "daemon/jobs/charging.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/first_device.h"
#include "daemon/jobs/preparation.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/run/compiler.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include <stdlib.h>
#include <string.h>

// A measurement setup has a running mean of the seconds that its measurements hold a device. This
// is the weight of the old mean when a new measurement is added.
#define HELD_KEEP 0.8

struct lifecycle {
    const struct daemon_parts *parts;
    struct preparation_events preparation; // callbacks of preparations
    struct run_events run;                 // callbacks of runs
    struct first_devices first;            // where candidates were measured last
    bool stopping;                         // lifecycle_stop was called
};

static unsigned long long number(const struct job *job)
{
    return (unsigned long long)job->id;
}

// Puts the job into the queue that its state says, or cancels it when its budget is used up.
static void enqueue(struct lifecycle *lifecycle, struct job *job)
{
    char *refusal = charging_refusal(job);

    if (refusal) {
        lifecycle_cancel(lifecycle, job, JOB_CAUSE_BUDGET, refusal);
    } else {
        scheduler_add(lifecycle->parts->scheduler, job);
    }
    free(refusal);
}

// --- admit

void lifecycle_admit(struct lifecycle *lifecycle, struct job *job)
{
    if (lifecycle->stopping) {
        return; // the ledger has the job and brings it back after the restart
    }
    (void)counters_search(lifecycle->parts->counters, job->search->tenant, job->search->name);
    enqueue(lifecycle, job);
}

// --- prepare

static void prepare(void *owner, struct job *job, const struct queue_grant *grant)
{
    struct lifecycle *lifecycle = owner;

    job_set_state(job, JOB_COMPILING);
    preparation_start(lifecycle->parts, &lifecycle->preparation, job, grant);
}

// A job that measures a candidate again does so on another device, where there is one that is idle
// or soon will be: what a single device gets wrong is not wrong twice alike.
static void avoid_first_device(const struct lifecycle *lifecycle, struct job *job)
{
    if (job->fresh && job->attempt == 0) {
        job->queued.fair.avoid = first_devices_find(&lifecycle->first, job);
    }
}

// The compiler has given its verdict on the candidate: VERDICT_NONE when it could be compiled.
static void after_compilation(struct lifecycle *lifecycle, struct job *job,
                              struct compiled *compiled)
{
    struct completions *completions = lifecycle->parts->completions;

    if (job->kind == JOB_COMPILE) {
        complete_compiled(completions, job, compiled);
    } else if (compiled->verdict != VERDICT_NONE) {
        complete_unmeasured(completions, job, compiled->verdict, compiled->reason, compiled);
    } else {
        job_carry_compiled(job, compiled);
        job_set_state(job, JOB_READY);
        avoid_first_device(lifecycle, job);
        enqueue(lifecycle, job);
    }
}

static void on_prepared(void *owner, struct job *job, const struct preparation_end *end)
{
    struct lifecycle *lifecycle = owner;
    const struct daemon_parts *parts = lifecycle->parts;

    scheduler_prepared(parts->scheduler, end->grant, end->seconds);
    job->compile_seconds = (float)end->seconds;
    counters_search(parts->counters, job->search->tenant, job->search->name)->compile_seconds +=
        end->seconds;
    switch (end->outcome) {
    case PREPARED:
        after_compilation(lifecycle, job, end->compiled);
        return;
    case PREPARED_DEFECT:
        if (job->kind == JOB_MEASURE) {
            complete_unmeasured(parts->completions, job, VERDICT_COMPILE_ERROR, end->reason, NULL);
            return;
        }
        complete_buried(parts->completions, job, JOB_CAUSE_BAD_PROBLEM, end->reason);
        return;
    case PREPARED_LOST:
        complete_buried(parts->completions, job, end->cause, end->reason);
        return;
    }
}

// --- measure

static void on_read_ahead(void *owner)
{
    struct lifecycle *lifecycle = owner;

    scheduler_was_read(lifecycle->parts->scheduler);
}

static void ahead(void *owner, struct job *job)
{
    struct lifecycle *lifecycle = owner;

    run_prepare(lifecycle->parts, job, on_read_ahead, lifecycle);
}

static void behind(void *owner, struct job *job)
{
    (void)owner;
    run_forget(job);
}

static void measure(void *owner, struct job *job, struct device *device,
                    const struct queue_grant *grant)
{
    struct lifecycle *lifecycle = owner;

    run_start(lifecycle->parts, &lifecycle->run, job, device, grant);
}

static void on_started(void *owner, struct job *job)
{
    (void)owner;
    job_set_state(job, JOB_RUNNING);
    log_event(LOG_INFO, "job-running job=%llu search=%s key=%s device=%s attempt=%u", number(job),
              job->search->name, job->key, run_device(job->run)->name, job->attempt);
}

// The run gave no result. The job waits for a device again. It is still READY when its run ended
// before the executor was to be started.
static void measure_again(struct lifecycle *lifecycle, struct job *job)
{
    ledger_move(lifecycle->parts->ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
    if (job->state != JOB_READY) {
        job_set_state(job, JOB_READY);
    }
    enqueue(lifecycle, job);
}

// The executor was lost during the run. The job is tried on another device, which shows whether the
// job or the device is at fault. When the second executor is lost as well, the job is buried and
// the first device is no longer blamed for it.
static void after_loss(struct lifecycle *lifecycle, struct job *job, const struct run_end *end)
{
    const struct daemon_parts *parts = lifecycle->parts;

    job->attempt++;
    log_event(LOG_WARNING, "job-lost job=%llu device=%s attempt=%u reason=\"%s\"", number(job),
              end->device->name, job->attempt, end->reason);
    if (job->attempt < JOB_LOST_MAX) {
        job->queued.fair.avoid = devices_number(parts->devices, end->device);
        measure_again(lifecycle, job);
        return;
    }
    devices_forgive(parts->devices, job->id, job->queued.fair.avoid);
    char *why =
        xasprintf("its executor was lost %u times, the last time: %s", job->attempt, end->reason);
    complete_buried(parts->completions, job, JOB_CAUSE_LOST_EXECUTOR, why);
    free(why);
}

// The host could not start an executor. The executor pool starts nothing for a while, so the job
// waits; no attempt is counted.
static void after_no_start(struct lifecycle *lifecycle, struct job *job, const char *reason)
{
    log_event(LOG_WARNING, "job-waits job=%llu seconds=%u reason=\"%s\"", number(job),
              executors_held(lifecycle->parts->executors), reason);
    measure_again(lifecycle, job);
}

// Heat, a hardware brake or another program disturbed the measurement. The job waits for a device
// that is not disturbed: another one, or the same one later.
static void after_disturbance(struct lifecycle *lifecycle, struct job *job, const char *reason)
{
    job->disturbed++;
    log_event(LOG_NOTICE, "job-disturbed job=%llu times=%u reason=\"%s\"", number(job),
              job->disturbed, reason);
    measure_again(lifecycle, job);
}

// A launch of the candidate did not end in time. On a GPU that may be because it stood still:
// another program on it has crashed, say. The candidate is at fault when that happens again.
static void after_doubt(struct lifecycle *lifecycle, struct job *job, const char *reason)
{
    job->doubted = true;
    log_event(LOG_NOTICE, "job-doubtful job=%llu reason=\"%s\"", number(job), reason);
    measure_again(lifecycle, job);
}

// A stored blob that the run needs is missing or damaged. Compiled objects are made again, once;
// the problem cannot be made again.
static void after_missing_object(struct lifecycle *lifecycle, struct job *job,
                                 const struct run_end *end)
{
    const struct daemon_parts *parts = lifecycle->parts;
    struct compile_input input = setup_input(job->setup, COMPILE_CANDIDATE, &job->candidate);

    input.unsealed = job->unsealed;
    log_event(LOG_WARNING, "object-missing job=%llu reason=\"%s\"", number(job), end->reason);
    compiler_forget(parts->compiler, &input);
    setup_forget_objects(job->setup, &job->candidate);
    job_set_state(job, JOB_QUEUED);
    job->attempt++;
    if (end->blob == RUN_BLOB_PROBLEM || job->attempt >= JOB_LOST_MAX) {
        complete_buried(parts->completions, job, JOB_CAUSE_MISSING_BLOB, end->reason);
        return;
    }
    ledger_move(parts->ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
    lifecycle_admit(lifecycle, job);
}

// Keeps what people who watch want to know of the search: its problem and its best candidate. One
// that ran unsealed may be no record, and is none here.
static void keep_best(struct counters_search *search, const struct job *job,
                      const struct run_end *end)
{
    const char *problem = job ? job->setup->name : NULL;
    const struct result *result = end->outcome == RUN_RESULT ? end->result : NULL;

    if (problem && (!search->problem || strcmp(search->problem, problem) != 0)) {
        free(search->problem);
        search->problem = xstrdup(problem);
    }
    if (result && !result->unsealed && result->speedup && verdict_is_ratio(result->verdict) &&
        !(result->speedup->log2 <= search->best[0])) {
        search->best[0] = result->speedup->log2;
        search->best[1] = result->speedup->lo;
        search->best[2] = result->speedup->hi;
    }
}

static void count_run(struct counters *counters, const struct job *job, const struct run_end *end)
{
    struct counters_search *search = counters_search(counters, end->tenant, end->search);

    search->device_seconds += end->held_s;
    search->measured += end->outcome == RUN_RESULT;
    keep_best(search, job, end);
    counters->device_seconds += end->held_s;
    counters->lost += end->outcome == RUN_LOST;
}

static void ask_again(void *owner, struct job *job)
{
    run_ask_again(job, owner);
}

// The job's result has gone to the cache and may answer equal jobs that have asked it already.
static void tell_equal_jobs(const struct daemon_parts *parts, const struct job *job)
{
    struct digest key = run_cache_key(parts, job);

    scheduler_visit_ahead(parts->scheduler, job->device_class, ask_again, &key);
}

static void on_measured(void *owner, struct job *job, struct run_end *end)
{
    struct lifecycle *lifecycle = owner;
    const struct daemon_parts *parts = lifecycle->parts;

    count_run(parts->counters, job, end);
    scheduler_measured(parts->scheduler, end->held_s);
    charging_save(parts); // the ledger gets what was used before the job's end
    switch (end->outcome) {
    case RUN_RESULT: {
        double *mean = &job->setup->held_s;

        *mean = *mean > 0 ? HELD_KEEP * *mean + (1 - HELD_KEEP) * end->held_s : end->held_s;
        first_devices_keep(&lifecycle->first, job, devices_number(parts->devices, end->device));
        complete_measured(parts->completions, job, end->result, end->cacheable);
        if (end->cacheable) {
            tell_equal_jobs(parts, job);
        }
        return;
    }
    case RUN_CACHED:
        complete_cached(parts->completions, job, end->cached);
        return;
    case RUN_LOST:
        after_loss(lifecycle, job, end);
        return;
    case RUN_NO_START:
        after_no_start(lifecycle, job, end->reason);
        return;
    case RUN_TOO_LARGE:
        complete_buried(parts->completions, job, JOB_CAUSE_TOO_LARGE, end->reason);
        return;
    case RUN_DISTURBED:
        after_disturbance(lifecycle, job, end->reason);
        return;
    case RUN_DOUBTFUL:
        after_doubt(lifecycle, job, end->reason);
        return;
    case RUN_NO_OBJECT:
        after_missing_object(lifecycle, job, end);
        return;
    case RUN_CANCELLED:
        return;
    }
}

// --- cancel, at any stage

// Takes the job out of its queue, its preparation or its run. None of them calls back.
static void withdraw(struct lifecycle *lifecycle, struct job *job)
{
    struct scheduler *scheduler = lifecycle->parts->scheduler;

    scheduler_remove(scheduler, job);
    if (job->preparation) {
        struct queue_grant grant = preparation_cancel(job);

        scheduler_prepared(scheduler, &grant, 0);
    }
    run_forget(job);
    run_cancel(job);
}

void lifecycle_cancel(struct lifecycle *lifecycle, struct job *job, enum job_cause cause,
                      const char *reason)
{
    if (job->completing || !job->journalled || job_state_is_terminal(job->state)) {
        return;
    }
    withdraw(lifecycle, job);
    complete_cancelled(lifecycle->parts->completions, job, cause, reason);
}

// Cancels every waiting job whose budget is used up. Running jobs are left alone.
static void cancel_over_budget(struct lifecycle *lifecycle)
{
    struct job *job = job_table_first(lifecycle->parts->jobs);

    for (; job; job = job->by_id.next) {
        char *refusal =
            job_state_is_terminal(job->state) || job->run ? NULL : charging_refusal(job);

        if (refusal) {
            lifecycle_cancel(lifecycle, job, JOB_CAUSE_BUDGET, refusal);
            free(refusal);
        }
    }
}

void lifecycle_tick(struct lifecycle *lifecycle)
{
    if (lifecycle->stopping) {
        return;
    }
    charging_charge_runs(lifecycle->parts);
    if (accounts_take_exhausted(lifecycle->parts->accounts)) {
        cancel_over_budget(lifecycle);
    }
    charging_save(lifecycle->parts);
}

// --- create and stop

struct lifecycle *lifecycle_create(const struct daemon_parts *parts)
{
    struct lifecycle *lifecycle = xcalloc(1, sizeof(*lifecycle));
    const struct scheduler_events events = {.ahead = ahead,
                                            .behind = behind,
                                            .prepare = prepare,
                                            .measure = measure,
                                            .owner = lifecycle};

    lifecycle->parts = parts;
    lifecycle->preparation = (struct preparation_events){.on_end = on_prepared, .owner = lifecycle};
    lifecycle->run =
        (struct run_events){.on_started = on_started, .on_end = on_measured, .owner = lifecycle};
    scheduler_serve(parts->scheduler, &events);
    return lifecycle;
}

void lifecycle_stop(struct lifecycle *lifecycle)
{
    const struct daemon_parts *parts = lifecycle->parts;

    lifecycle->stopping = true;
    scheduler_stop(parts->scheduler);
    for (struct job *job = job_table_first(parts->jobs); job; job = job->by_id.next) {
        if (job->run) {
            ledger_move(parts->ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
        }
        withdraw(lifecycle, job);
    }
}

void lifecycle_free(struct lifecycle *lifecycle)
{
    free(lifecycle);
}
