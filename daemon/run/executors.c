// Design note. A run is over when its process is gone, with two exceptions: a process that stays
// gives its answer and goes back, and a process that does not die is given up.
//
//   one plan per process   child ─stdout─▶ report, child's end ─▶ on_end
//   more                   warm ─on_outcome─▶ back to the others ─▶ on_end
//                                       └─is_last─▶ retired, warm's end ─▶ on_end
//                          warm's end without a report ─▶ on_end, lost
#include "daemon/run/executors.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "daemon/run/prestarted.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct executors {
    struct children *children;
    struct prestarted_set *prestarted_set;
};

struct executor {
    struct child *child; // one of the two
    struct prestarted *prestarted;
    struct strbuf output; // child: its report so far
    bool has_outcome;     // warm: end.report is it, and its process is ending
    bool (*is_last)(void *owner, const struct bytes *outcome);
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
    return children_count(pool->children);
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

    prestarted_set_fill(pool->prestarted_set, &prestarted, count);
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
    children_sweep(pool->children);
    prestarted_set_tick(pool->prestarted_set);
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

static void on_child_end(void *owner, const struct child_end *end)
{
    struct executor *executor = owner;

    if (end->ok) {
        executor->end.outcome = strbuf_detach_bytes(&executor->output);
    }
    take_end(executor, end, end->ok);
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

static void on_prestarted_outcome(void *owner, struct bytes *outcome)
{
    struct executor *executor = owner;
    bool last = executor->is_last && executor->is_last(executor->owner, outcome);

    executor->end.outcome = *outcome;
    *outcome = (struct bytes){0};
    if (last) {
        executor->has_outcome = true;
        prestarted_retire(executor->prestarted);
    } else {
        executor->end.ok = true;
        prestarted_give_back(executor->prestarted);
        finish(executor);
    }
}

static void on_prestarted_end(void *owner, const struct child_end *end)
{
    struct executor *executor = owner;

    take_end(executor, end, executor->has_outcome);
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

// --- both

int executor_start(struct executor **ret, struct executors *pool,
                   const struct executor_config *config, struct bytes *plan_taken, struct err *err)
{
    struct executor *executor = xcalloc(1, sizeof(*executor));

    executor->is_last = config->is_last;
    executor->on_end = config->on_end;
    executor->owner = config->owner;
    executor->started_ns = clock_now_ns(&clock_system);
    int rc = config->keep ? start_prestarted(executor, pool, config, plan_taken, err)
                          : start_child(executor, pool, config, plan_taken, err);
    bytes_clear(plan_taken); // when nothing has taken it
    if (rc != 0) {
        free(executor);
        return rc;
    }
    *ret = executor;
    return 0;
}

void executor_stop(struct executor *executor)
{
    struct executor_end *end = &executor->end;

    if (!end->stopped && !executor->has_outcome) {
        end->stopped = true;
        if (executor->child) {
            child_terminate(executor->child, "was stopped");
        } else {
            prestarted_stop(executor->prestarted);
        }
    }
}
