// Design note. A run is over when its process is gone, with two exceptions: a process that stays
// gives its answer and goes back, and a process that does not die is given up.
//
//   one plan per process   child ─stdout─▶ report, child's end ─▶ on_end
//   more                   warm ─on_outcome─▶ back to the others ─▶ on_end
//                                       └─is_last─▶ retired, warm's end ─▶ on_end
//                          warm's end without a report ─▶ on_end, lost
//
// A report is read between the two, once: a short one at once, a long one on a thread of libuv's. The
// run goes on when that is done. Meanwhile it may be stopped, and a process that stays may end: its
// end is kept until then.
#include "daemon/run/executors.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "daemon/run/prestarted.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct executors {
    uv_loop_t *loop;
    struct children *children; // NULL, as warms, where a stand-in serves
    struct prestarted_set *prestarted_set;
    struct executor_stand_in stand_in;
    unsigned failures; // starts in a row that failed, those at the same time counted once
    unsigned held;     // ticks until something should be started
};

struct executor {
    struct executors *pool;
    struct child *child; // one of the two, NULL when it is gone
    struct prestarted *prestarted;
    uv_work_t work;        // reading a long report
    bool reading;          // that is under way
    bool last;             // what read said
    struct child_end gone; // of the process, when it is gone
    void (*on_read)(struct executor *executor);
    struct strbuf output; // child: its report so far
    bool has_outcome;     // warm: end.report is it
    bool (*read)(void *owner, const struct bytes *outcome);
    void (*on_end)(void *owner, struct executor_end *end);
    void *owner;
    uint64_t started_ns;
    struct executor_end end; // being filled
};

int executor_pool_create(struct executors **ret, uv_loop_t *loop, const char *path,
                         struct cgroups *cgroups, struct err *err)
{
    struct children *children;
    int rc = children_create(&children, loop, path, cgroups, err);

    if (rc == 0) {
        *ret = xcalloc(1, sizeof(**ret));
        (*ret)->loop = loop;
        (*ret)->children = children;
        (*ret)->prestarted_set = prestarted_set_create(children);
    }
    return rc;
}

void executor_pool_free(struct executors *pool)
{
    if (pool) {
        prestarted_set_free(pool->prestarted_set);
        children_free(pool->children);
        free(pool);
    }
}

size_t executor_pool_count(const struct executors *pool)
{
    return pool->children ? children_count(pool->children) : 0;
}

static struct prestarted_config prestarted_config_of(const struct executor_config *config)
{
    return (struct prestarted_config){
        .mode = config->mode,
        .argument = config->argument,
        .group = config->keep,
        .fresh = config->fresh,
        .limits = config->limits,
        .grace_ms = config->grace_ms,
    };
}

void executors_prestart(struct executors *pool, const struct executor_config *config, size_t count)
{
    struct prestarted_config prestarted = prestarted_config_of(config);

    if (pool->prestarted_set) {
        prestarted_set_fill(pool->prestarted_set, &prestarted, count);
    }
}

void executor_pool_stop(struct executors *pool)
{
    prestarted_set_stop(pool->prestarted_set);
}

void executor_pool_kill(struct executors *pool)
{
    children_kill(pool->children);
}

void executor_pool_tick(struct executors *pool)
{
    pool->held -= pool->held > 0;
    if (pool->children) {
        children_sweep(pool->children);
        prestarted_set_tick(pool->prestarted_set);
    }
}

unsigned executor_pool_held(const struct executors *pool)
{
    return pool->held;
}

static void hold(struct executors *pool)
{
    if (pool->held == 0) { // else it is the same misfortune
        unsigned ticks = 1U << pool->failures;

        pool->held = ticks;
        pool->failures += ticks < EXECUTOR_HELD_MAX;
    }
}

// Tells the owner. The run is gone afterwards.
static void finish(struct executor *executor)
{
    struct executor_end *end = &executor->end;

    end->seconds = clock_seconds(clock_now_ns(&clock_system) - executor->started_ns);
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

// --- the report

static void read_work(uv_work_t *work)
{
    struct executor *executor = work->data;

    executor->last = executor->read(executor->owner, &executor->end.outcome);
}

static void on_read_work(uv_work_t *work, int status)
{
    struct executor *executor = work->data;

    (void)status; // never cancelled
    executor->reading = false;
    executor->on_read(executor);
}

// Goes on with on_read, perhaps later.
static void read_outcome(struct executor *executor, void (*on_read)(struct executor *executor))
{
    executor->on_read = on_read;
    executor->work.data = executor;
    // A missing callback is all that uv_queue_work refuses.
    executor->reading =
        executor->read && executor->end.outcome.len > EXECUTOR_READ_HERE &&
        uv_queue_work(executor->pool->loop, &executor->work, read_work, on_read_work) == 0;
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
        (void)snprintf(what, sizeof(what), "printed more than the %zu bytes a report may have",
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

static int start_child(struct executor *executor, struct executors *pool,
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
    int rc = child_start(&executor->child, pool->children, &child, err);

    if (rc == 0) {
        strbuf_init(&executor->output, config->outcome_max);
        child_limit(executor->child, config->deadline_ms, "did not end within its deadline");
        child_write(executor->child, "", 0, plan_taken, true);
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
    } else if (!executor->end.stopped) { // else its end is on its way
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

static int start_prestarted(struct executor *executor, struct executors *pool,
                            const struct executor_config *config, struct bytes *plan_taken,
                            struct err *err)
{
    struct prestarted_config prestarted = prestarted_config_of(config);
    struct prestarted_question question = {
        .outcome_max = config->outcome_max,
        .deadline_ms = config->deadline_ms,
        .on_outcome = on_prestarted_outcome,
        .on_end = on_prestarted_end,
        .owner = executor,
    };
    int rc = prestarted_set_take(&executor->prestarted, pool->prestarted_set, &prestarted, err);

    if (rc == 0) {
        prestarted_ask(executor->prestarted, &question, plan_taken);
    }
    return rc;
}

// --- a stand-in

struct executors *executor_pool_stand_in(const struct executor_stand_in *stand_in)
{
    struct executors *pool = xcalloc(1, sizeof(*pool));

    pool->stand_in = *stand_in;
    return pool;
}

static int start_stand_in(struct executor *executor, struct executors *pool,
                          const struct executor_config *config, struct bytes *plan_taken,
                          struct err *err)
{
    const struct executor_stand_in *stand_in = &pool->stand_in;

    return stand_in->start(stand_in->owner, executor, config, plan_taken, err);
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

// --- all

int executor_start(struct executor **ret, struct executors *pool,
                   const struct executor_config *config, struct bytes *plan_taken, struct err *err)
{
    struct executor *executor = xcalloc(1, sizeof(*executor));

    executor->pool = pool;
    executor->read = config->read;
    executor->on_end = config->on_end;
    executor->owner = config->owner;
    executor->started_ns = clock_now_ns(&clock_system);
    int rc = (pool->stand_in.start ? start_stand_in
              : config->keep       ? start_prestarted
                                   : start_child)(executor, pool, config, plan_taken, err);
    bytes_clear(plan_taken); // when nothing has taken it
    if (rc != 0) {
        hold(pool);
        free(executor);
        return rc;
    }
    pool->failures = 0;
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
    if (executor->pool->stand_in.stop) {
        executor->pool->stand_in.stop(executor->pool->stand_in.owner, executor);
    } else if (executor->child) {
        child_terminate(executor->child, "was stopped");
    } else if (executor->prestarted) {
        prestarted_stop(executor->prestarted);
    }
}
