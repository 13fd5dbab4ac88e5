// Design note. A job waits twice: in the preparation queue until it may be prepared, and in the
// queue of its class of devices until a device is free. Both queues are fair between searches; the
// first one charges seconds of compiling, the second one seconds of a device.
//
// The number of preparations at the same time is bounded: it is a little larger than twice the
// number of compile slots, and as many more may be of searches that have none. So jobs whose
// compilations are cached pass while the slots are busy, and a job waits behind few compilations of
// others.
//
// `on_turn` is the only function that lets jobs begin. It is the callback of a timer of 0 ms, so
// that no callback of a job can call it recursively; scheduler_wake starts the timer. Where devices
// own all cores (`exclusive`), nothing is compiled while something is measured. The two sides then
// take turns by the seconds that each has used.
//
// When a device is free the queue decides who gets it, as late as that: nobody is promised a
// device. One that needs an unused process lets others past while the only idle device has none
// yet. After each turn the jobs that are likely to go next are told to be `ahead` (lookahead.c), so
// that what their measurements need is there by then.
//
// Invariants: `preparing` and `beyond` are the unfinished grants of the preparation queue, and
// `running` the number of devices that are held for jobs. Nothing begins after scheduler_stop.
#include "daemon/jobs/scheduler.h"
#include "common/clock.h"
#include "daemon/jobs/lookahead.h"
#include "daemon/run/compiler.h"
#include "daemon/run/executors.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/counters.h"
#include <stdlib.h>

#define PREPARATIONS_EXTRA 8 // preparations at the same time beyond twice the compile slots

struct scheduler {
    const struct daemon_parts *parts;
    struct scheduler_events events;
    uv_timer_t timer;                // calls on_turn
    struct queue *preparation_queue; // jobs in QUEUED
    size_t preparing;                // preparations in progress, but for those beyond
    size_t beyond;                   // those of searches that had none, beyond the limit
    size_t running;                  // devices that are held
    size_t reading;                  // jobs whose reading ahead has not come back
    struct lookahead *lookaheads;    // of the classes that had READY jobs; list
    double compile_used_s;           // seconds of compiling, to take turns when `exclusive`
    double device_used_s;            // seconds of devices, likewise
    bool stopping;
};

static double now_seconds(const struct scheduler *scheduler)
{
    return clock_seconds(clock_now_ns(scheduler->parts->clock));
}

// --- queues

static struct queue *queue_of(const struct scheduler *scheduler, const struct job *job)
{
    return job->state == JOB_READY ? job->device_class->queue : scheduler->preparation_queue;
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
    job->queued.fair.fresh = job->fresh;
    queue_add(queue_of(scheduler, job), &job->queued, in, &who, job->priority, job->id);
    scheduler_wake(scheduler);
}

static struct lookahead *lookahead_of(struct scheduler *scheduler,
                                      struct device_class *device_class)
{
    struct lookahead *lookahead = scheduler->lookaheads;

    while (lookahead && lookahead->device_class != device_class) {
        lookahead = lookahead->next;
    }
    if (!lookahead) {
        lookahead = xcalloc(1, sizeof(*lookahead));
        lookahead->device_class = device_class;
        lookahead->next = scheduler->lookaheads;
        scheduler->lookaheads = lookahead;
    }
    return lookahead;
}

void scheduler_remove(struct scheduler *scheduler, struct job *job)
{
    if (queue_holds(&job->queued)) {
        queue_remove(queue_of(scheduler, job), &job->queued);
    }
    if (job->state == JOB_READY) {
        lookahead_remove(lookahead_of(scheduler, job->device_class), job);
    }
}

// As many preparations as the limit says are shared by weight. As many more begin for searches that
// have none, which so do not wait until one of the others ends.
static void start_preparations(struct scheduler *scheduler)
{
    const struct scheduler_events *events = &scheduler->events;
    size_t limit = 2 * scheduler->parts->limits.compile_slots + PREPARATIONS_EXTRA;

    while (scheduler->preparing < limit || scheduler->beyond < limit) {
        const struct fair_terms terms = {.first = scheduler->preparing >= limit};
        struct queue_grant grant;
        struct queue_entry *entry =
            queue_take(scheduler->preparation_queue, &terms, now_seconds(scheduler), &grant);

        if (!entry) {
            return;
        }
        grant.beyond = terms.first;
        *(grant.beyond ? &scheduler->beyond : &scheduler->preparing) += 1;
        events->prepare(events->owner, job_of_entry(entry), &grant);
    }
}

void scheduler_prepared(struct scheduler *scheduler, struct queue_grant *grant, double seconds)
{
    *(grant->beyond ? &scheduler->beyond : &scheduler->preparing) -= 1;
    queue_finish(scheduler->preparation_queue, grant, seconds, seconds <= 0);
    scheduler_wake(scheduler);
}

// Returns whether the budgets let a search hold another device now.
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
        const struct device *device = devices_idle(devices, device_class, 0);

        terms.sole = devices_number(devices, device);
        terms.fresh_waits = run_would_wait(scheduler->parts, device);
    }
    return terms;
}

static void start_runs_of(struct scheduler *scheduler, struct device_class *device_class)
{
    const struct scheduler_events *events = &scheduler->events;
    const struct devices *devices = scheduler->parts->devices;

    // A run may end within `measure`, also because the host can start nothing.
    while (queue_count(device_class->queue) > 0 && devices_idle(devices, device_class, 0) &&
           executors_held(scheduler->parts->executors) == 0) {
        struct fair_terms terms = terms_of(scheduler, device_class);
        struct queue_grant grant;
        struct queue_entry *entry =
            queue_take(device_class->queue, &terms, now_seconds(scheduler), &grant);

        if (!entry) {
            return;
        }
        struct job *job = job_of_entry(entry);
        scheduler->running++;
        lookahead_remove(lookahead_of(scheduler, device_class), job);
        events->measure(events->owner, job,
                        devices_idle(devices, device_class, job->queued.fair.avoid), &grant);
    }
}

static void tell_ahead(void *owner, struct job *job)
{
    struct scheduler *scheduler = owner;

    scheduler->reading++;
    scheduler->events.ahead(scheduler->events.owner, job);
}

static void tell_behind(void *owner, struct job *job)
{
    struct scheduler *scheduler = owner;

    scheduler->events.behind(scheduler->events.owner, job);
}

// Tells the jobs that are likely to go next.
static void look_ahead(struct scheduler *scheduler, struct device_class *device_class)
{
    const struct lookahead_events events = {
        .ahead = tell_ahead, .behind = tell_behind, .owner = scheduler};

    if (queue_count(device_class->queue) > 0) {
        struct fair_terms terms = terms_of(scheduler, device_class);

        lookahead_fill(lookahead_of(scheduler, device_class), &terms, now_seconds(scheduler),
                       &events);
    }
}

void scheduler_was_read(struct scheduler *scheduler)
{
    scheduler->reading--;
}

void scheduler_visit_ahead(const struct scheduler *scheduler,
                           const struct device_class *device_class,
                           void (*visit)(void *owner, struct job *job), void *owner)
{
    for (const struct lookahead *l = scheduler->lookaheads; l; l = l->next) {
        for (size_t i = 0; l->device_class == device_class && i < l->count; i++) {
            visit(owner, l->job[i]);
        }
    }
}

void scheduler_measured(struct scheduler *scheduler, double held_s)
{
    scheduler->running--;
    scheduler->device_used_s += held_s;
    scheduler_wake(scheduler);
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

// Returns whether it is the compilers' turn where both sides want the cores. A side that had
// nothing to do is set to the seconds of the other one, so that it gets no credit for that time.
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
    scheduler_wake(scheduler);
}

static void on_turn(uv_timer_t *timer)
{
    struct scheduler *scheduler = timer->data;
    const struct daemon_parts *parts = scheduler->parts;

    start_preparations(scheduler);
    compiler_kick(parts->compiler);
    if (executors_held(parts->executors) > 0) {
        return; // the host could not start processes; the next tick tries again
    }
    if (parts->limits.exclusive &&
        (compiler_running(parts->compiler) > 0 || compilers_turn(scheduler))) {
        return;
    }
    for (struct device_class *c = parts->devices->classes; c; c = c->next) {
        start_runs_of(scheduler, c);
        look_ahead(scheduler, c);
    }
}

void scheduler_wake(struct scheduler *scheduler)
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
    queue_sweep(scheduler->preparation_queue);
    (void)devices_tick(parts->devices, clock_now_ns(parts->clock));
    scheduler_wake(scheduler); // a budget per hour may let jobs begin again
}

// --- create and stop

static void on_started(void *owner)
{
    scheduler_wake(owner);
}

struct scheduler *scheduler_create(const struct daemon_parts *parts)
{
    struct scheduler *scheduler = xcalloc(1, sizeof(*scheduler));

    scheduler->parts = parts;
    scheduler->preparation_queue = queue_create();
    (void)uv_timer_init(parts->loop, &scheduler->timer);
    scheduler->timer.data = scheduler;
    executors_watch(parts->executors, on_started, scheduler);
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
    return scheduler->preparing + scheduler->beyond > 0 || scheduler->running > 0 ||
           scheduler->reading > 0;
}

size_t scheduler_unprepared(const struct scheduler *scheduler)
{
    return queue_count(scheduler->preparation_queue);
}

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

void scheduler_free(struct scheduler *scheduler)
{
    if (scheduler) {
        while (scheduler->lookaheads) {
            struct lookahead *next = scheduler->lookaheads->next;

            free(scheduler->lookaheads);
            scheduler->lookaheads = next;
        }
        queue_free(scheduler->preparation_queue);
        uv_close((uv_handle_t *)&scheduler->timer, on_close);
    }
}
