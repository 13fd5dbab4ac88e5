// Design note. A job's way:
//
//   admit ─▶ intake queue ─▶ preparation ─▶ queue of its class ─▶ run on a device ─▶ end
//
// Both queues are fair between searches: the intake by seconds of compiling, the other by seconds
// of device. A preparation is a compilation, or a look into the cache.
//
// A job whose search or tenant has used its budget up ends as CANCELLED, with a sentence, at the
// latest when it would wait for a device; what runs goes on and is charged. A budget per hour only
// closes the gate of the queue for a while.
//
// The intake bounds how many jobs are being prepared: a few more than there are compile slots, so
// that cached ones pass by while the slots are busy, and so that a job waits behind few
// compilations of others.
//
// What may start is decided in one place, `schedule`, from a timer of 0 ms, so that no callback
// recurses into it. Where devices own all cores (exclusive), compilations and measurements take
// turns by the seconds each side has used.
#include "daemon/jobs/lifecycle.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/jobs/preparation.h"
#include "daemon/sched/spending.h"
#include <stddef.h>
#include <stdlib.h>

#define HELD_KEEP 0.8  // of the running mean of what a measurement setup's measurements take
#define INTAKE_EXTRA 8 // preparations beyond twice the compile slots

struct lifecycle {
    struct lifecycle_config config;
    uv_timer_t timer; // schedule
    struct compiler *compiler;
    struct setups *setups;
    struct queue *intake;
    struct preparation_config preparation;
    struct measure_config measure;
    struct spending spending;
    size_t preparing;      // jobs with a preparation
    size_t running;        // devices that are held
    double compile_used_s; // exclusive: seconds used by each side
    double device_used_s;
    bool stopping;
};

static unsigned long long number(const struct job *job)
{
    return (unsigned long long)job->id;
}

static void on_schedule(uv_timer_t *timer);

static void schedule_soon(struct lifecycle *lifecycle)
{
    if (!lifecycle->stopping) {
        (void)uv_timer_start(&lifecycle->timer, on_schedule, 0, 0);
    }
}

// --- preparation

static void on_miss(void *owner, struct job *job)
{
    (void)owner;
    if (job->state == JOB_QUEUED) {
        job_set_state(job, JOB_COMPILING);
    }
}

static double now_seconds(void)
{
    return clock_seconds(clock_now_ns(&clock_system));
}

static void enqueue_ready(struct lifecycle *lifecycle, struct job *job)
{
    if (!spending_refuses(&lifecycle->spending, job)) {
        spending_enqueue(job->device_class->queue, job);
    }
    schedule_soon(lifecycle);
}

static void on_prepared(void *owner, struct job *job, const struct preparation_end *end)
{
    struct lifecycle *lifecycle = owner;
    struct completions *completions = lifecycle->config.completions;

    lifecycle->preparing--;
    queue_settle(lifecycle->intake, end->ticket, end->seconds, end->seconds <= 0);
    job->compile_seconds = (float)end->seconds;
    counters_search(lifecycle->config.counters, job->search->tenant, job->search->name)
        ->compile_seconds += end->seconds;
    schedule_soon(lifecycle);
    switch (end->outcome) {
    case PREPARED:
        on_miss(lifecycle, job);
        job_set_state(job, JOB_READY);
        enqueue_ready(lifecycle, job);
        return;
    case PREPARED_COMPILED:
        end_compiled(completions, job, end->compiled);
        return;
    case PREPARED_REFUSED:
        end_unmeasured(completions, job, end->compiled->verdict, end->compiled->reason,
                       end->compiled);
        return;
    case PREPARED_DEFECT:
        if (job->kind == JOB_MEASURE) {
            end_unmeasured(completions, job, VERDICT_COMPILE_ERROR, end->reason, NULL);
            return;
        }
        end_buried(completions, job, end->reason);
        return;
    case PREPARED_LOST:
        end_buried(completions, job, end->reason);
        return;
    }
}

static void start_preparations(struct lifecycle *lifecycle)
{
    uint32_t limit = 2 * (uint32_t)lifecycle->config.compile_slots + INTAKE_EXTRA;
    struct queue_ticket ticket;
    struct queue_entry *entry;

    while (lifecycle->preparing < limit) {
        struct fair_terms terms = {.idle = limit - (uint32_t)lifecycle->preparing};

        entry = queue_take(lifecycle->intake, &terms, now_seconds(), &ticket);
        if (!entry) {
            return;
        }
        struct job *job = (struct job *)((char *)entry - offsetof(struct job, queued));
        lifecycle->preparing++;
        preparation_start(&lifecycle->preparation, job, &ticket);
    }
}

// --- runs

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
    ledger_move(lifecycle->config.ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
    job_set_state(job, JOB_READY);
    enqueue_ready(lifecycle, job);
}

// The executor was lost with the job on it. Another device tells whose fault it was.
static void after_loss(struct lifecycle *lifecycle, struct job *job, const struct run_end *end)
{
    job->attempt++;
    log_event(LOG_WARNING, "job-lost job=%llu device=%s attempt=%u reason=\"%s\"", number(job),
              end->device->name, job->attempt, end->reason);
    char *why;
    if (job->attempt >= JOB_LOST_MAX) {
        devices_forgive(lifecycle->config.devices, job->id, job->queued.fair.avoid);
        why = xasprintf("its executor was lost %u times, the last time: %s", job->attempt,
                        end->reason);
        end_buried(lifecycle->config.completions, job, why);
        free(why);
        return;
    }
    job->queued.fair.avoid = devices_number(lifecycle->config.devices, end->device);
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
    struct compile_input input = setup_candidate(job->setup, &job->candidate);

    log_event(LOG_WARNING, "object-missing job=%llu reason=\"%s\"", number(job), end->reason);
    compiler_forget(lifecycle->compiler, &input);
    setup_forget_objects(job->setup);
    job_set_state(job, JOB_QUEUED);
    job->attempt++;
    if (end->blob == RUN_BLOB_PROBLEM || job->attempt >= JOB_LOST_MAX) {
        end_buried(lifecycle->config.completions, job, end->reason);
        return;
    }
    ledger_move(lifecycle->config.ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
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

static void on_run_end(void *owner, struct job *job, struct run_end *end)
{
    struct lifecycle *lifecycle = owner;

    count_run(lifecycle->config.counters, end);
    lifecycle->running--;
    lifecycle->device_used_s += end->held_s;
    if (job && end->outcome == RUN_RESULT) {
        double *mean = &job->setup->held_s;

        *mean = *mean > 0 ? HELD_KEEP * *mean + (1 - HELD_KEEP) * end->held_s : end->held_s;
    }
    spending_save(&lifecycle->spending); // before the job's end
    schedule_soon(lifecycle);
    switch (end->outcome) {
    case RUN_RESULT:
        end_measured(lifecycle->config.completions, job, end->result, end->cacheable);
        return;
    case RUN_CACHED:
        end_cached(lifecycle->config.completions, job, end->cached);
        return;
    case RUN_LOST:
        after_loss(lifecycle, job, end);
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

static struct fair_terms terms_of(struct lifecycle *lifecycle,
                                  const struct device_class *device_class)
{
    const struct devices *devices = lifecycle->config.devices;
    struct fair_terms terms = {.may = spending_may_begin, .owner = &lifecycle->spending};

    terms.devices = devices_serving(devices, device_class, &terms.idle);
    if (terms.idle == 1) {
        terms.sole = devices_number(devices, devices_idle(devices, device_class, 0));
    }
    return terms;
}

static void start_runs(struct lifecycle *lifecycle)
{
    struct devices *devices = lifecycle->config.devices;
    struct device_class *device_class;

    for (device_class = devices->classes; device_class; device_class = device_class->next) {
        while (queue_count(device_class->queue) > 0 && devices_idle(devices, device_class, 0)) {
            struct fair_terms terms = terms_of(lifecycle, device_class);
            struct queue_ticket ticket;
            struct queue_entry *entry =
                queue_take(device_class->queue, &terms, now_seconds(), &ticket);

            if (!entry) {
                break;
            }
            struct job *job = (struct job *)((char *)entry - offsetof(struct job, queued));
            lifecycle->running++;
            run_start(&lifecycle->measure, job,
                      devices_idle(devices, device_class, job->queued.fair.avoid), &ticket);
        }
    }
}

// --- what may start

static bool device_wanted(struct lifecycle *lifecycle)
{
    const struct device_class *device_class = lifecycle->config.devices->classes;

    for (; device_class; device_class = device_class->next) {
        struct fair_terms terms = terms_of(lifecycle, device_class);

        if (queue_count(device_class->queue) > 0 && terms.idle > 0 &&
            queue_has(device_class->queue, &terms, now_seconds())) {
            return true;
        }
    }
    return false;
}

// Whose turn it is where both want the cores. The side that had nothing to do gets no credit for
// it.
static bool compilers_turn(struct lifecycle *lifecycle)
{
    bool compile = compiler_waiting(lifecycle->compiler) > 0;
    bool device = device_wanted(lifecycle) || lifecycle->running > 0;

    if (!compile && lifecycle->compile_used_s < lifecycle->device_used_s) {
        lifecycle->compile_used_s = lifecycle->device_used_s;
    }
    if (!device && lifecycle->device_used_s < lifecycle->compile_used_s) {
        lifecycle->device_used_s = lifecycle->compile_used_s;
    }
    return compile && (!device || lifecycle->compile_used_s <= lifecycle->device_used_s);
}

static bool may_compile(void *owner)
{
    struct lifecycle *lifecycle = owner;

    if (!lifecycle->config.exclusive) {
        return true;
    }
    return lifecycle->running == 0 && compilers_turn(lifecycle);
}

static void on_compiler_idle(void *owner, double seconds)
{
    struct lifecycle *lifecycle = owner;

    lifecycle->compile_used_s += seconds;
    lifecycle->config.counters->compile_seconds += seconds;
    schedule_soon(lifecycle);
}

static void on_schedule(uv_timer_t *timer)
{
    struct lifecycle *lifecycle = timer->data;

    start_preparations(lifecycle);
    compiler_kick(lifecycle->compiler);
    if (!lifecycle->config.exclusive ||
        (compiler_running(lifecycle->compiler) == 0 && !compilers_turn(lifecycle))) {
        start_runs(lifecycle);
    }
}

// --- from outside

void lifecycle_admit(struct lifecycle *lifecycle, struct job *job)
{
    if (lifecycle->stopping) {
        return; // the ledger has it
    }
    (void)counters_search(lifecycle->config.counters, job->search->tenant, job->search->name);
    if (!spending_refuses(&lifecycle->spending, job)) {
        spending_enqueue(lifecycle->intake, job);
    }
    schedule_soon(lifecycle);
}

void lifecycle_cancel(struct lifecycle *lifecycle, struct job *job, const char *reason)
{
    if (job->settling || !job->journalled || job_state_is_terminal(job->state)) {
        return;
    }
    if (queue_holds(&job->queued)) {
        queue_remove(job->state == JOB_READY ? job->device_class->queue : lifecycle->intake,
                     &job->queued);
    } else if (job->preparation) {
        struct queue_ticket ticket = preparation_cancel(job);

        queue_settle(lifecycle->intake, &ticket, 0, true);
        lifecycle->preparing--;
    } else if (job->run) {
        run_cancel(job);
    }
    end_cancelled(lifecycle->config.completions, job, reason);
    schedule_soon(lifecycle);
}

static void cancel_one(void *owner, struct job *job, const char *reason)
{
    lifecycle_cancel(owner, job, reason);
}

static void tend_queues(struct lifecycle *lifecycle)
{
    struct device_class *device_class = lifecycle->config.devices->classes;

    for (; device_class; device_class = device_class->next) {
        queue_sweep(device_class->queue);
    }
    queue_sweep(lifecycle->intake);
}

void lifecycle_tick(struct lifecycle *lifecycle)
{
    if (lifecycle->stopping) {
        return;
    }
    spending_tick(&lifecycle->spending);
    compiler_tick(lifecycle->compiler);
    tend_queues(lifecycle);
    (void)devices_tick(lifecycle->config.devices, clock_now_ns(&clock_system));
    schedule_soon(lifecycle); // a budget per hour may have some again
}

void lifecycle_kick(struct lifecycle *lifecycle)
{
    if (!lifecycle->stopping) {
        schedule_soon(lifecycle);
    }
}

const char *lifecycle_device_name(const struct job *job)
{
    return job->run ? run_device(job->run)->name : NULL;
}

struct setups *lifecycle_setups(const struct lifecycle *lifecycle)
{
    return lifecycle->setups;
}

size_t lifecycle_intake(const struct lifecycle *lifecycle)
{
    return queue_count(lifecycle->intake);
}

size_t lifecycle_compiling(const struct lifecycle *lifecycle)
{
    return compiler_running(lifecycle->compiler);
}

bool lifecycle_is_held(const struct lifecycle *lifecycle)
{
    return compiler_is_held(lifecycle->compiler);
}

// --- begin and end

static void init_parts(struct lifecycle *lifecycle)
{
    const struct lifecycle_config *config = &lifecycle->config;
    struct compiler_config compiler = {
        .blobs = config->blobs,
        .ledger = config->ledger,
        .executors = config->executors,
        .slots = config->compile_slots,
        .max_seconds = config->compile_seconds,
        .slack_ms = config->slack_ms,
        .grace_ms = config->grace_ms,
        .sandbox_off = config->sandbox_off,
        .may_start = may_compile,
        .on_idle = on_compiler_idle,
        .owner = lifecycle,
    };

    lifecycle->compiler = compiler_create(&compiler);
    lifecycle->setups =
        setups_create(config->blobs, lifecycle->compiler, config->devices, config->secret);
    lifecycle->spending = (struct spending){
        .jobs = config->jobs,
        .devices = config->devices,
        .accounts = config->accounts,
        .ledger = config->ledger,
        .cancel = cancel_one,
        .owner = lifecycle,
    };
    lifecycle->preparation = (struct preparation_config){
        .compiler = lifecycle->compiler,
        .on_miss = on_miss,
        .on_end = on_prepared,
        .owner = lifecycle,
    };
    lifecycle->measure = (struct measure_config){
        .blobs = config->blobs,
        .ledger = config->ledger,
        .executors = config->executors,
        .compiler = lifecycle->compiler,
        .accounts = config->accounts,
        .slack_ms = config->slack_ms,
        .grace_ms = config->grace_ms,
        .sandbox_off = config->sandbox_off,
        .on_started = on_started,
        .on_end = on_run_end,
        .owner = lifecycle,
    };
}

struct lifecycle *lifecycle_create(uv_loop_t *loop, const struct lifecycle_config *config)
{
    struct lifecycle *lifecycle = xcalloc(1, sizeof(*lifecycle));

    lifecycle->config = *config;
    lifecycle->intake = queue_create();
    (void)uv_timer_init(loop, &lifecycle->timer);
    lifecycle->timer.data = lifecycle;
    init_parts(lifecycle);
    return lifecycle;
}

void lifecycle_prestart(struct lifecycle *lifecycle)
{
    const struct devices *devices = lifecycle->config.devices;
    bool any = false;

    for (size_t i = 0; i < devices->count; i++) {
        if (devices->device[i].uuid[0]) {
            run_prestart(&lifecycle->measure, &devices->device[i]);
            any = true;
        }
    }
    if (any) {
        compiler_keep_ready(lifecycle->compiler);
    }
}

void lifecycle_stop(struct lifecycle *lifecycle)
{
    struct job *job = job_table_first(lifecycle->config.jobs);

    lifecycle->stopping = true;
    (void)uv_timer_stop(&lifecycle->timer);
    for (; job; job = job->by_id.next) {
        if (job->preparation) {
            (void)preparation_cancel(job);
            lifecycle->preparing--;
        }
        if (job->run) {
            run_cancel(job);
            ledger_move(lifecycle->config.ledger, job->id, JOB_QUEUED, job->attempt, NULL, NULL);
        }
        queue_remove(job->state == JOB_READY && job->device_class ? job->device_class->queue
                                                                  : lifecycle->intake,
                     &job->queued);
    }
    compiler_stop(lifecycle->compiler);
}

bool lifecycle_busy(const struct lifecycle *lifecycle)
{
    return lifecycle->preparing > 0 || lifecycle->running > 0 || compiler_busy(lifecycle->compiler);
}

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void lifecycle_free(struct lifecycle *lifecycle)
{
    if (lifecycle) {
        setups_free(lifecycle->setups);
        compiler_free(lifecycle->compiler);
        queue_free(lifecycle->intake);
        uv_close((uv_handle_t *)&lifecycle->timer, on_close);
    }
}
