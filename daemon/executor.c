// Design note. A run is over when its process is gone, with two exceptions: a process that stays
// gives its answer and goes back, and a process that does not die is given up.
//
//   one plan per process   child ─stdout─▶ report, child's end ─▶ on_end
//   more                   warm ─on_report─▶ back to the others ─▶ on_end
//                                       └─is_last─▶ retired, warm's end ─▶ on_end
//                          warm's end without a report ─▶ on_end, lost
#include "daemon/executor.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "daemon/warm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct executor_pool {
    struct children *children;
    struct warms *warms;
};

struct executor {
    struct child *child; // one of the two
    struct warm *warm;
    struct strbuf output; // child: its report so far
    bool has_report;      // warm: end.report is it, and its process is ending
    bool (*is_last)(void *owner, const struct bytes *report);
    void (*on_end)(void *owner, struct executor_end *end);
    void *owner;
    uint64_t started_ns;
    struct executor_end end; // being filled
};

int executor_pool_create(struct executor_pool **ret, uv_loop_t *loop, const char *path,
                         struct cgroups *cgroups, struct err *err)
{
    struct children *children;
    int rc = children_create(&children, loop, path, cgroups, err);

    if (rc == 0) {
        *ret = xcalloc(1, sizeof(**ret));
        (*ret)->children = children;
        (*ret)->warms = warms_create(children);
    }
    return rc;
}

void executor_pool_free(struct executor_pool *pool)
{
    if (pool) {
        warms_free(pool->warms);
        children_free(pool->children);
        free(pool);
    }
}

size_t executor_pool_count(const struct executor_pool *pool)
{
    return children_count(pool->children);
}

static struct warm_config warm_config_of(const struct executor_config *config)
{
    return (struct warm_config){
        .mode = config->mode,
        .argument = config->argument,
        .group = config->keep,
        .fresh = config->fresh,
        .limits = config->limits,
        .grace_ms = config->grace_ms,
    };
}

void executor_pool_spare(struct executor_pool *pool, const struct executor_config *config,
                         size_t count)
{
    struct warm_config warm = warm_config_of(config);

    warms_keep_spares(pool->warms, &warm, count);
}

void executor_pool_stop(struct executor_pool *pool)
{
    warms_stop(pool->warms);
}

void executor_pool_kill(struct executor_pool *pool)
{
    children_kill(pool->children);
}

void executor_pool_tick(struct executor_pool *pool)
{
    children_sweep(pool->children);
    warms_tick(pool->warms);
}

// Tells the owner. The run is gone afterwards.
static void finish(struct executor *executor)
{
    struct executor_end *end = &executor->end;

    end->seconds = clock_seconds(clock_now_ns(&clock_system) - executor->started_ns);
    executor->on_end(executor->owner, end);
    bytes_clear(&end->report);
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
    char what[96];

    strbuf_add(&executor->output, data, len);
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
        executor->end.report = strbuf_detach_bytes(&executor->output);
    }
    take_end(executor, end, end->ok);
}

static int start_child(struct executor *executor, struct executor_pool *pool,
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
        strbuf_init(&executor->output, config->report_max);
        child_limit(executor->child, config->deadline_ms, "did not end within its deadline");
        child_write(executor->child, "", 0, plan_taken, true);
    }
    return rc;
}

// --- a process that stays

static void on_warm_report(void *owner, struct bytes *report)
{
    struct executor *executor = owner;
    bool last = executor->is_last && executor->is_last(executor->owner, report);

    executor->end.report = *report;
    *report = (struct bytes){0};
    if (last) {
        executor->has_report = true;
        warm_retire(executor->warm);
    } else {
        executor->end.ok = true;
        warm_give_back(executor->warm);
        finish(executor);
    }
}

static void on_warm_end(void *owner, const struct child_end *end)
{
    struct executor *executor = owner;

    take_end(executor, end, executor->has_report);
}

static int start_warm(struct executor *executor, struct executor_pool *pool,
                      const struct executor_config *config, struct bytes *plan_taken,
                      struct err *err)
{
    struct warm_config warm = warm_config_of(config);
    struct warm_question question = {
        .report_max = config->report_max,
        .deadline_ms = config->deadline_ms,
        .on_report = on_warm_report,
        .on_end = on_warm_end,
        .owner = executor,
    };
    int rc = warms_take(&executor->warm, pool->warms, &warm, err);

    if (rc == 0) {
        warm_ask(executor->warm, &question, plan_taken);
    }
    return rc;
}

// --- both

int executor_start(struct executor **ret, struct executor_pool *pool,
                   const struct executor_config *config, struct bytes *plan_taken, struct err *err)
{
    struct executor *executor = xcalloc(1, sizeof(*executor));
    int rc;

    executor->is_last = config->is_last;
    executor->on_end = config->on_end;
    executor->owner = config->owner;
    executor->started_ns = clock_now_ns(&clock_system);
    rc = config->keep ? start_warm(executor, pool, config, plan_taken, err)
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

    if (!end->stopped && !executor->has_report) {
        end->stopped = true;
        if (executor->child) {
            child_terminate(executor->child, "was stopped");
        } else {
            warm_stop(executor->warm);
        }
    }
}
