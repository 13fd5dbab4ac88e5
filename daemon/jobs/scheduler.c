// Design note. A job waits twice: in the intake until it is prepared, and in the queue of its class
// until a device is free. Both queues are fair between searches, the intake by seconds of
// compiling, the other by seconds of device.
//
// The intake bounds how many jobs are being prepared: a few more than there are compile slots, so
// that cached ones pass by while the slots are busy, and so that a job waits behind few
// compilations of others.
//
// What may begin is decided in one place, `on_turn`, from a timer of 0 ms, so that no callback
// recurses into it: whoever frees something kicks the timer. Where devices own all cores
// (exclusive) nothing is compiled while something is measured; the two sides take turns by the
// seconds each has used.
//
// Invariants: `preparing` counts the tickets of the intake that are not settled, `running` the
// devices that are held for jobs; after scheduler_stop nothing begins.
#include "daemon/jobs/scheduler.h"
#include "common/clock.h"
#include "daemon/run/compiler.h"
#include "daemon/run/executors.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/counters.h"
#include <stddef.h>
#include <stdlib.h>

#define INTAKE_EXTRA 8 // preparations beyond twice the compile slots

struct scheduler {
    const struct daemon_parts *parts;
    struct scheduler_events events;
    uv_timer_t timer; // on_turn
    struct queue *intake;
    size_t preparing;      // preparations under way
    size_t running;        // devices that are held
    double compile_used_s; // exclusive: seconds used by each side
    double device_used_s;
    bool stopping;
};

static double now_seconds(const struct scheduler *scheduler)
{
    return clock_seconds(clock_now_ns(scheduler->parts->clock));
}

// --- queues

static struct queue *queue_of(const struct scheduler *scheduler, const struct job *job)
{
    return job->state == JOB_READY ? job->device_class->queue : scheduler->intake;
}

void scheduler_add(struct scheduler *scheduler, struct job *job)
{
    const struct account *account = job->search->account;
    const struct fair_who who = {
        .tenant = account->tenant->id,
        .search = account->id,
        .tenant_weight = account->tenant->weight,
        .weight = account->weight,
    };
    enum queue_class in = job->wanted_class;

    if (in == QUEUE_INTERACTIVE && job->setup->held_s > QUEUE_INTERACTIVE_S) {
        in = QUEUE_NORMAL;
    }
    queue_add(queue_of(scheduler, job), &job->queued, in, &who, job->priority, job->id);
    scheduler_kick(scheduler);
}

void scheduler_remove(struct scheduler *scheduler, struct job *job)
{
    if (queue_holds(&job->queued)) {
        queue_remove(queue_of(scheduler, job), &job->queued);
    }
}

static struct job *job_of(struct queue_entry *entry)
{
    return (struct job *)((char *)entry - offsetof(struct job, queued));
}

static void start_preparations(struct scheduler *scheduler)
{
    const struct scheduler_events *events = &scheduler->events;
    const struct fair_terms terms = {.devices = 0};
    size_t limit = 2 * scheduler->parts->limits.compile_slots + INTAKE_EXTRA;

    while (scheduler->preparing < limit) {
        struct queue_ticket ticket;
        struct queue_entry *entry =
            queue_take(scheduler->intake, &terms, now_seconds(scheduler), &ticket);

        if (!entry) {
            return;
        }
        scheduler->preparing++;
        events->prepare(events->owner, job_of(entry), &ticket);
    }
}

void scheduler_prepared(struct scheduler *scheduler, struct queue_ticket *ticket, double seconds)
{
    scheduler->preparing--;
    queue_settle(scheduler->intake, ticket, seconds, seconds <= 0);
    scheduler_kick(scheduler);
}

// Whether a search may hold devices just now.
static bool has_budget(void *owner, uint64_t search)
{
    const struct scheduler *scheduler = owner;
    struct account *account = accounts_find_id(scheduler->parts->accounts, search);

    return !account || account_may_begin(account, now_seconds(scheduler));
}

static struct fair_terms terms_of(struct scheduler *scheduler,
                                  const struct device_class *device_class)
{
    const struct devices *devices = scheduler->parts->devices;
    struct fair_terms terms = {.may = has_budget, .owner = scheduler};
    uint32_t idle;

    terms.devices = devices_serving(devices, device_class, &idle);
    if (idle == 1) {
        terms.sole = devices_number(devices, devices_idle(devices, device_class, 0));
    }
    return terms;
}

static void start_runs_of(struct scheduler *scheduler, const struct device_class *device_class)
{
    const struct scheduler_events *events = &scheduler->events;
    const struct devices *devices = scheduler->parts->devices;

    while (queue_count(device_class->queue) > 0 && devices_idle(devices, device_class, 0)) {
        struct fair_terms terms = terms_of(scheduler, device_class);
        struct queue_ticket ticket;
        struct queue_entry *entry =
            queue_take(device_class->queue, &terms, now_seconds(scheduler), &ticket);

        if (!entry) {
            return;
        }
        struct job *job = job_of(entry);
        scheduler->running++;
        events->measure(events->owner, job,
                        devices_idle(devices, device_class, job->queued.fair.avoid), &ticket);
    }
}

void scheduler_measured(struct scheduler *scheduler, double held_s)
{
    scheduler->running--;
    scheduler->device_used_s += held_s;
    scheduler_kick(scheduler);
}

// --- turns

static bool device_wanted(struct scheduler *scheduler)
{
    const struct devices *devices = scheduler->parts->devices;

    for (const struct device_class *c = devices->classes; c; c = c->next) {
        struct fair_terms terms = terms_of(scheduler, c);

        if (queue_count(c->queue) > 0 && devices_idle(devices, c, 0) &&
            queue_has(c->queue, &terms, now_seconds(scheduler))) {
            return true;
        }
    }
    return false;
}

// Whose turn it is where both want the cores. The side that had nothing to do gets no credit for
// it.
static bool compilers_turn(struct scheduler *scheduler)
{
    bool compile = compiler_waiting(scheduler->parts->compiler) > 0;
    bool device = device_wanted(scheduler) || scheduler->running > 0;

    if (!compile && scheduler->compile_used_s < scheduler->device_used_s) {
        scheduler->compile_used_s = scheduler->device_used_s;
    }
    if (!device && scheduler->device_used_s < scheduler->compile_used_s) {
        scheduler->device_used_s = scheduler->compile_used_s;
    }
    return compile && (!device || scheduler->compile_used_s <= scheduler->device_used_s);
}

bool scheduler_may_compile(void *owner)
{
    struct scheduler *scheduler = owner;

    if (!scheduler->parts->limits.exclusive) {
        return true;
    }
    return scheduler->running == 0 && compilers_turn(scheduler);
}

void scheduler_compiled(void *owner, double seconds)
{
    struct scheduler *scheduler = owner;

    scheduler->compile_used_s += seconds;
    scheduler->parts->counters->compile_seconds += seconds;
    scheduler_kick(scheduler);
}

static void on_turn(uv_timer_t *timer)
{
    struct scheduler *scheduler = timer->data;
    const struct daemon_parts *parts = scheduler->parts;

    start_preparations(scheduler);
    compiler_kick(parts->compiler);
    if (executors_held(parts->executors) > 0) {
        return; // the next tick tries again
    }
    if (parts->limits.exclusive &&
        (compiler_running(parts->compiler) > 0 || compilers_turn(scheduler))) {
        return;
    }
    for (const struct device_class *c = parts->devices->classes; c; c = c->next) {
        start_runs_of(scheduler, c);
    }
}

void scheduler_kick(struct scheduler *scheduler)
{
    if (!scheduler->stopping) {
        (void)uv_timer_start(&scheduler->timer, on_turn, 0, 0);
    }
}

void scheduler_tick(struct scheduler *scheduler)
{
    const struct daemon_parts *parts = scheduler->parts;

    if (scheduler->stopping) {
        return;
    }
    for (const struct device_class *c = parts->devices->classes; c; c = c->next) {
        queue_sweep(c->queue);
    }
    queue_sweep(scheduler->intake);
    (void)devices_tick(parts->devices, clock_now_ns(parts->clock));
    scheduler_kick(scheduler); // a budget per hour may have some again
}

// --- begin and end

struct scheduler *scheduler_create(const struct daemon_parts *parts)
{
    struct scheduler *scheduler = xcalloc(1, sizeof(*scheduler));

    scheduler->parts = parts;
    scheduler->intake = queue_create();
    (void)uv_timer_init(parts->loop, &scheduler->timer);
    scheduler->timer.data = scheduler;
    return scheduler;
}

void scheduler_serve(struct scheduler *scheduler, const struct scheduler_events *events)
{
    scheduler->events = *events;
}

void scheduler_stop(struct scheduler *scheduler)
{
    scheduler->stopping = true;
    (void)uv_timer_stop(&scheduler->timer);
}

bool scheduler_busy(const struct scheduler *scheduler)
{
    return scheduler->preparing > 0 || scheduler->running > 0;
}

size_t scheduler_intake(const struct scheduler *scheduler)
{
    return queue_count(scheduler->intake);
}

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void scheduler_free(struct scheduler *scheduler)
{
    if (scheduler) {
        queue_free(scheduler->intake);
        uv_close((uv_handle_t *)&scheduler->timer, on_close);
    }
}
