// Design note. A run is over when its process has ended, with two exceptions: a process that stays
// gives its outcome and becomes idle, and a process that does not die is given up.
//
//   own process     child ─stdout─▶ outcome, child's end ─▶ on_end
//   prestarted      on_outcome ─▶ process given back ─▶ on_end
//                            └─read says last─▶ process retired, its end ─▶ on_end
//                   process's end without an outcome ─▶ on_end, lost
//
// An outcome is read once, between its arrival and on_end: a short one at once, a long one on a
// thread of libuv. The run goes on when that is done. Until then the run may be stopped, and a
// prestarted process may end: its end is kept in `gone` until the outcome has been read.
#include "daemon/run/executors.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "daemon/run/prestarted.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct executors {
    uv_loop_t *loop;
    struct children *children; // NULL in a stand-in, like prestarted_set
    struct prestarted_set *prestarted_set;
    struct executor_stand_in stand_in;
    bool slow;         // of a stand-in: the test says when a process is ready
    unsigned failures; // starts in a row that failed; those during one wait count once
    unsigned held;     // ticks until something may be started
};

struct executor {
    struct executors *executors;
    struct child *child; // its process is one of these two; both are NULL when it has ended
    struct prestarted *prestarted;
    uv_work_t work;        // reads a long outcome
    bool reading;          // the work is under way
    bool last;             // what read() returned
    struct child_end gone; // how the process ended, when it has
    void (*on_read)(struct executor *executor);
    struct strbuf output; // of a process of its own: the outcome so far
    bool has_outcome;     // of a prestarted process: end.outcome is complete
    void (*on_plan)(void *owner);
    bool (*read)(void *owner, const struct bytes *outcome);
    void (*on_end)(void *owner, struct executor_end *end);
    void *owner;
    bool has_plan;           // its process was ready and has been sent the plan
    uint64_t planned_ns;     // when
    struct executor_end end; // filled until on_end
};

int executors_create(struct executors **ret, uv_loop_t *loop, const char *path, const char *scratch,
                     struct cgroups *cgroups, struct err *err)
{
    struct children *children;
    int rc = children_create(&children, loop, path, scratch, cgroups, err);

    if (rc == 0) {
        *ret = xcalloc(1, sizeof(**ret));
        (*ret)->loop = loop;
        (*ret)->children = children;
        (*ret)->prestarted_set = prestarted_set_create(children, &clock_system);
    }
    return rc;
}

void executors_free(struct executors *executors)
{
    if (executors) {
        prestarted_set_free(executors->prestarted_set);
        children_free(executors->children);
        free(executors);
    }
}

size_t executors_count(const struct executors *executors)
{
    return executors->children ? children_count(executors->children) : 0;
}

static struct prestarted_config prestarted_config_of(const struct executor_config *config)
{
    return (struct prestarted_config){
        .mode = config->mode,
        .argument = config->argument,
        .on_device = config->on_device,
        .group = config->keep,
        .fresh = config->fresh,
        .limits = config->limits,
        .grace_ms = config->grace_ms,
    };
}

void executors_prestart(struct executors *executors, const struct executor_config *config,
                        size_t count, prestarted_first *on_first, void *owner)
{
    struct prestarted_config prestarted = prestarted_config_of(config);

    if (executors->prestarted_set) {
        prestarted_set_fill(executors->prestarted_set, &prestarted, count, on_first, owner);
    }
}

bool executors_is_starting(const struct executors *executors, const struct executor_config *config)
{
    struct prestarted_config prestarted = prestarted_config_of(config);

    return executors->prestarted_set &&
           prestarted_set_is_starting(executors->prestarted_set, &prestarted);
}

void executors_watch(struct executors *executors, void (*on_started)(void *owner), void *owner)
{
    if (executors->prestarted_set) {
        prestarted_set_watch(executors->prestarted_set, on_started, owner);
    }
}

void executors_stop(struct executors *executors)
{
    prestarted_set_stop(executors->prestarted_set);
}

void executors_kill(struct executors *executors)
{
    children_kill(executors->children);
}

void executors_tick(struct executors *executors)
{
    executors->held -= executors->held > 0;
    if (executors->children) {
        children_sweep(executors->children);
        prestarted_set_tick(executors->prestarted_set);
    }
}

unsigned executors_held(const struct executors *executors)
{
    return executors->held;
}

void executors_hold(struct executors *executors)
{
    if (executors->held == 0) {
        unsigned ticks = 1U << executors->failures;

        executors->held = ticks;
        executors->failures += ticks < EXECUTOR_HELD_MAX;
    }
}

// The process is ready and has been sent the plan.
static void on_plan(void *owner)
{
    struct executor *executor = owner;

    executor->has_plan = true;
    executor->planned_ns = clock_now_ns(&clock_system);
    if (executor->on_plan) {
        executor->on_plan(executor->owner);
    }
}

// Tells the owner and frees the run.
static void finish(struct executor *executor)
{
    struct executor_end *end = &executor->end;

    if (executor->has_plan) {
        end->seconds = clock_seconds(clock_now_ns(&clock_system) - executor->planned_ns);
    }
    executor->on_end(executor->owner, end);
    bytes_clear(&end->outcome);
    strbuf_release(&executor->output);
    free(executor);
}

static void take_end(struct executor *executor, const struct child_end *end, bool ok)
{
    executor->end.ok = ok;
    executor->end.stuck = end->stuck;
    if (!ok || end->stuck) {
        (void)snprintf(executor->end.reason, sizeof(executor->end.reason), "%s", end->reason);
    }
    finish(executor);
}

// --- reading the outcome

static void read_work(uv_work_t *work)
{
    struct executor *executor = work->data;

    executor->last = executor->read(executor->owner, &executor->end.outcome);
}

static void on_read_work(uv_work_t *work, int status)
{
    struct executor *executor = work->data;

    (void)status; // the work is never cancelled
    executor->reading = false;
    executor->on_read(executor);
}

// Has the outcome read and calls on_read afterwards, at once or later.
static void read_outcome(struct executor *executor, void (*on_read)(struct executor *executor))
{
    executor->on_read = on_read;
    executor->work.data = executor;
    // uv_queue_work refuses nothing but a missing callback.
    executor->reading =
        executor->read && executor->end.outcome.len > EXECUTOR_READ_HERE &&
        uv_queue_work(executor->executors->loop, &executor->work, read_work, on_read_work) == 0;
    if (!executor->reading) {
        executor->last = executor->read && executor->read(executor->owner, &executor->end.outcome);
        on_read(executor);
    }
}

// --- a process of its own

static void on_child_output(void *owner, const char *data, size_t len)
{
    struct executor *executor = owner;

    strbuf_add(&executor->output, data, len);
    char what[96];
    if (executor->output.truncated) {
        (void)snprintf(what, sizeof(what), "printed more than the %zu bytes an outcome may have",
                       executor->output.max);
        child_kill(executor->child, what);
    }
}

static void on_child_read(struct executor *executor)
{
    take_end(executor, &executor->gone, true);
}

static void on_child_end(void *owner, const struct child_end *end)
{
    struct executor *executor = owner;

    executor->child = NULL;
    executor->gone = *end;
    if (end->ok) {
        executor->end.outcome = strbuf_detach_bytes(&executor->output);
        read_outcome(executor, on_child_read);
    } else {
        take_end(executor, end, false);
    }
}

static int start_child(struct executor *executor, struct executors *executors,
                       const struct executor_config *config, struct bytes *plan_taken,
                       struct err *err)
{
    struct child_config child = {
        .mode = config->mode,
        .argument = config->argument,
        .grace_ms = config->grace_ms,
        .limits = config->limits,
        .on_output = on_child_output,
        .on_end = on_child_end,
        .owner = executor,
    };
    int rc = child_start(&executor->child, executors->children, &child, err);

    if (rc == 0) {
        strbuf_init(&executor->output, config->outcome_max);
        child_limit(executor->child, config->deadline_ms, "did not end within its deadline");
        child_write(executor->child, "", 0, plan_taken, true);
        on_plan(executor);
    }
    return rc;
}

// --- a process that stays

static void on_prestarted_read(struct executor *executor)
{
    if (!executor->prestarted) {
        take_end(executor, &executor->gone, true);
    } else if (executor->last) {
        prestarted_retire(executor->prestarted);
    } else if (!executor->end.stopped) { // a stopped process is about to end
        executor->end.ok = true;
        prestarted_give_back(executor->prestarted);
        finish(executor);
    }
}

static void on_prestarted_outcome(void *owner, struct bytes *outcome)
{
    struct executor *executor = owner;

    executor->end.outcome = *outcome;
    *outcome = (struct bytes){0};
    executor->has_outcome = true;
    read_outcome(executor, on_prestarted_read);
}

static void on_prestarted_end(void *owner, const struct child_end *end)
{
    struct executor *executor = owner;

    executor->prestarted = NULL;
    executor->gone = *end;
    if (!executor->reading) {
        take_end(executor, end, executor->has_outcome);
    }
}

static int start_prestarted(struct executor *executor, struct executors *executors,
                            const struct executor_config *config, struct bytes *plan_taken,
                            struct err *err)
{
    struct prestarted_config prestarted = prestarted_config_of(config);
    struct prestarted_question question = {
        .outcome_max = config->outcome_max,
        .deadline_ms = config->deadline_ms,
        .on_plan = on_plan,
        .on_outcome = on_prestarted_outcome,
        .on_end = on_prestarted_end,
        .owner = executor,
    };
    int rc =
        prestarted_set_take(&executor->prestarted, executors->prestarted_set, &prestarted, err);

    if (rc == 0) {
        prestarted_ask(executor->prestarted, &question, plan_taken);
    }
    return rc;
}

// --- a stand-in for tests

struct executors *executors_stand_in(const struct executor_stand_in *stand_in)
{
    struct executors *executors = xcalloc(1, sizeof(*executors));

    executors->stand_in = *stand_in;
    return executors;
}

static int start_stand_in(struct executor *executor, struct executors *executors,
                          const struct executor_config *config, struct bytes *plan_taken,
                          struct err *err)
{
    const struct executor_stand_in *stand_in = &executors->stand_in;

    int rc = stand_in->start(stand_in->owner, executor, config, plan_taken, err);

    if (rc == 0 && !executors->slow) {
        on_plan(executor);
    }
    return rc;
}

void executors_slow_down(struct executors *stand_in)
{
    stand_in->slow = true;
}

void executor_is_ready(struct executor *executor)
{
    on_plan(executor);
}

void executor_answer(struct executor *executor, struct executor_end *end_taken)
{
    bool stopped = executor->end.stopped;

    executor->end = *end_taken;
    executor->end.stopped = stopped;
    *end_taken = (struct executor_end){0};
    if (executor->end.ok && executor->read) {
        (void)executor->read(executor->owner, &executor->end.outcome);
    }
    finish(executor);
}

// --- every run

int executor_start(struct executor **ret, struct executors *executors,
                   const struct executor_config *config, struct bytes *plan_taken, struct err *err)
{
    struct executor *executor = xcalloc(1, sizeof(*executor));

    executor->executors = executors;
    executor->on_plan = config->on_plan;
    executor->read = config->read;
    executor->on_end = config->on_end;
    executor->owner = config->owner;
    int rc = (executors->stand_in.start ? start_stand_in
              : config->keep            ? start_prestarted
                             : start_child)(executor, executors, config, plan_taken, err);
    bytes_clear(plan_taken); // if nothing has taken it
    if (rc != 0) {
        executors_hold(executors);
        free(executor);
        return rc;
    }
    executors->failures = 0;
    *ret = executor;
    return 0;
}

void executor_stop(struct executor *executor)
{
    struct executor_end *end = &executor->end;

    if (end->stopped || (executor->has_outcome && !executor->reading)) {
        return;
    }
    end->stopped = true;
    if (executor->executors->stand_in.stop) {
        executor->executors->stand_in.stop(executor->executors->stand_in.owner, executor);
    } else if (executor->child) {
        child_terminate(executor->child, "was stopped");
    } else if (executor->prestarted) {
        prestarted_stop(executor->prestarted);
    }
}
