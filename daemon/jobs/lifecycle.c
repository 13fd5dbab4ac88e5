// Design note. The stages of a job, in the order in which this file has them:
//
//   admit      submission.c or reload.c hands over a job that the ledger has; it waits in the
//              intake of scheduler.c.
//   prepare    The scheduler says that it may be prepared: preparation.c reads its problem and has
//              its sources compiled by compiler.c.
//   queue      Everything is compiled: it waits in the queue of its class of devices.
//   measure    The scheduler has a device for it: measure.c runs it there.
//   complete   ending.c tells the ledger, and then those who wait.
//
// Every stage begins here and reports here what has come of the job; none knows the next one. A
// stage that fails leads either to the end of the job or back, once or twice: to the queue when the
// executor was lost or the device was disturbed, to the intake when a compiled object has gone.
// How often is bounded by what the job counts (attempt, disturbed).
//
// The states are those of job.c. A job is at one place at a time: in a queue (`queued`), being
// prepared (`preparation`), on a device (`run`), or on its way into the ledger for good
// (`settling`); lifecycle_cancel takes it out of whichever it is in.
//
// A job whose search or tenant has used its budget up ends as CANCELLED, with a sentence, at the
// latest when it would wait for a device; what runs goes on and is charged. A budget per hour only
// closes the gate of the queue for a while.
#include "daemon/jobs/lifecycle.h"
#include "common/log.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/preparation.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/spending.h"
#include "daemon/run/compiler.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include <stdlib.h>

#define HELD_KEEP 0.8 // of the running mean of what a measurement setup's measurements take

struct lifecycle {
    const struct daemon_parts *parts;
    struct preparation_events preparation;
    struct run_events run;
    bool stopping;
};

static unsigned long long number(const struct job *job)
{
    return (unsigned long long)job->id;
}

// Into the queue of its state, unless its budget is used up.
static void enqueue(struct lifecycle *lifecycle, struct job *job)
{
    char *refusal = spending_refusal(job);

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
        return; // the ledger has it
    }
    (void)counters_search(lifecycle->parts->counters, job->search->tenant, job->search->name);
    enqueue(lifecycle, job);
}

// --- prepare

static void prepare(void *owner, struct job *job, const struct queue_ticket *ticket)
{
    struct lifecycle *lifecycle = owner;

    job_set_state(job, JOB_COMPILING);
    preparation_start(lifecycle->parts, &lifecycle->preparation, job, ticket);
}

// Its sources were compiled, or the candidate's cannot be.
static void after_compilation(struct lifecycle *lifecycle, struct job *job,
                              struct compiled *compiled)
{
    struct completions *completions = lifecycle->parts->completions;

    if (job->kind == JOB_COMPILE) {
        end_compiled(completions, job, compiled);
    } else if (compiled->verdict != VERDICT_NONE) {
        end_unmeasured(completions, job, compiled->verdict, compiled->reason, compiled);
    } else {
        job_carry_compiled(job, compiled);
        job_set_state(job, JOB_READY);
        enqueue(lifecycle, job);
    }
}

static void on_prepared(void *owner, struct job *job, const struct preparation_end *end)
{
    struct lifecycle *lifecycle = owner;
    const struct daemon_parts *parts = lifecycle->parts;

    scheduler_prepared(parts->scheduler, end->ticket, end->seconds);
    job->compile_seconds = (float)end->seconds;
    counters_search(parts->counters, job->search->tenant, job->search->name)->compile_seconds +=
        end->seconds;
    switch (end->outcome) {
    case PREPARED:
        after_compilation(lifecycle, job, end->compiled);
        return;
    case PREPARED_DEFECT:
        if (job->kind == JOB_MEASURE) {
            end_unmeasured(parts->completions, job, VERDICT_COMPILE_ERROR, end->reason, NULL);
            return;
        }
        end_buried(parts->completions, job, JOB_CAUSE_BAD_PROBLEM, end->reason);
        return;
    case PREPARED_LOST:
        end_buried(parts->completions, job, end->cause, end->reason);
        return;
    }
}

// --- measure

static void measure(void *owner, struct job *job, struct device *device,
                    const struct queue_ticket *ticket)
{
    struct lifecycle *lifecycle = owner;

    run_start(lifecycle->parts, &lifecycle->run, job, device, ticket);
}

static void on_started(void *owner, struct job *job)
{
    (void)owner;
    job_set_state(job, JOB_RUNNING);
    log_event(LOG_INFO, "job-running job=%llu search=%s key=%s device=%s attempt=%u", number(job),
              job->search->name, job->key, run_device(job->run)->name, job->attempt);
}

// Its run came to nothing: it waits for a device again.
static void measure_again(struct lifecycle *lifecycle, struct job *job)
{
    ledger_move(lifecycle->parts->ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
    job_set_state(job, JOB_READY);
    enqueue(lifecycle, job);
}

// The executor was lost with the job on it. Another device tells whose fault it was.
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
    end_buried(parts->completions, job, JOB_CAUSE_LOST_EXECUTOR, why);
    free(why);
}

// The executor could not be started. Whatever comes next waits for the host; no attempt is counted.
static void after_no_start(struct lifecycle *lifecycle, struct job *job, const char *reason)
{
    log_event(LOG_WARNING, "job-waits job=%llu seconds=%u reason=\"%s\"", number(job),
              executors_held(lifecycle->parts->executors), reason);
    measure_again(lifecycle, job);
}

// It waits for a device where nothing disturbs it: another one, or this one later.
static void after_disturbance(struct lifecycle *lifecycle, struct job *job, const char *reason)
{
    job->disturbed++;
    log_event(LOG_NOTICE, "job-disturbed job=%llu times=%u reason=\"%s\"", number(job),
              job->disturbed, reason);
    measure_again(lifecycle, job);
}

// Something that was compiled is no longer there. It is compiled again, once.
static void after_missing_object(struct lifecycle *lifecycle, struct job *job,
                                 const struct run_end *end)
{
    const struct daemon_parts *parts = lifecycle->parts;
    struct compile_input input = setup_input(job->setup, COMPILE_CANDIDATE, &job->candidate);

    log_event(LOG_WARNING, "object-missing job=%llu reason=\"%s\"", number(job), end->reason);
    compiler_forget(parts->compiler, &input);
    setup_forget_objects(job->setup);
    job_set_state(job, JOB_QUEUED);
    job->attempt++;
    if (end->blob == RUN_BLOB_PROBLEM || job->attempt >= JOB_LOST_MAX) {
        end_buried(parts->completions, job, JOB_CAUSE_MISSING_BLOB, end->reason);
        return;
    }
    ledger_move(parts->ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
    lifecycle_admit(lifecycle, job);
}

static void count_run(struct counters *counters, const struct run_end *end)
{
    struct counters_search *search = counters_search(counters, end->tenant, end->search);

    search->device_seconds += end->held_s;
    search->measured += end->outcome == RUN_RESULT;
    counters->device_seconds += end->held_s;
    counters->lost += end->outcome == RUN_LOST;
}

static void on_measured(void *owner, struct job *job, struct run_end *end)
{
    struct lifecycle *lifecycle = owner;
    const struct daemon_parts *parts = lifecycle->parts;

    count_run(parts->counters, end);
    scheduler_measured(parts->scheduler, end->held_s);
    spending_save(parts); // before the job's end
    switch (end->outcome) {
    case RUN_RESULT: {
        double *mean = &job->setup->held_s;

        *mean = *mean > 0 ? HELD_KEEP * *mean + (1 - HELD_KEEP) * end->held_s : end->held_s;
        end_measured(parts->completions, job, end->result, end->cacheable);
        return;
    }
    case RUN_CACHED:
        end_cached(parts->completions, job, end->cached);
        return;
    case RUN_LOST:
        after_loss(lifecycle, job, end);
        return;
    case RUN_NO_START:
        after_no_start(lifecycle, job, end->reason);
        return;
    case RUN_TOO_LARGE:
        end_buried(parts->completions, job, JOB_CAUSE_TOO_LARGE, end->reason);
        return;
    case RUN_DISTURBED:
        after_disturbance(lifecycle, job, end->reason);
        return;
    case RUN_NO_OBJECT:
        after_missing_object(lifecycle, job, end);
        return;
    case RUN_CANCELLED:
        return;
    }
}

// --- from outside, at any stage

// Out of wherever it is, without a word to it.
static void take_out(struct lifecycle *lifecycle, struct job *job)
{
    struct scheduler *scheduler = lifecycle->parts->scheduler;

    scheduler_remove(scheduler, job);
    if (job->preparation) {
        struct queue_ticket ticket = preparation_cancel(job);

        scheduler_prepared(scheduler, &ticket, 0);
    }
    run_cancel(job);
}

void lifecycle_cancel(struct lifecycle *lifecycle, struct job *job, enum job_cause cause,
                      const char *reason)
{
    if (job->settling || !job->journalled || job_state_is_terminal(job->state)) {
        return;
    }
    take_out(lifecycle, job);
    end_cancelled(lifecycle->parts->completions, job, cause, reason);
}

// Those that run are left alone.
static void end_hopeless(struct lifecycle *lifecycle)
{
    struct job *job = job_table_first(lifecycle->parts->jobs);

    for (; job; job = job->by_id.next) {
        char *refusal =
            job_state_is_terminal(job->state) || job->run ? NULL : spending_refusal(job);

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
    spending_charge(lifecycle->parts);
    if (accounts_take_over(lifecycle->parts->accounts)) {
        end_hopeless(lifecycle);
    }
    spending_save(lifecycle->parts);
}

// --- begin and end

struct lifecycle *lifecycle_create(const struct daemon_parts *parts)
{
    struct lifecycle *lifecycle = xcalloc(1, sizeof(*lifecycle));
    const struct scheduler_events events = {
        .prepare = prepare, .measure = measure, .owner = lifecycle};

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
        take_out(lifecycle, job);
    }
}

void lifecycle_free(struct lifecycle *lifecycle)
{
    free(lifecycle);
}
