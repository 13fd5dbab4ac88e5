// How a daemon ends.
//
// Design note. A daemon stops in these steps:
//
//   1. daemon_stop: requests are refused, parked WAITs are answered, the lifecycle stops and child
//      processes are ended.
//   2. on_stop_poll looks every few milliseconds whether anything is still in progress. That is
//      simpler than callbacks between all parts, and it happens once. The time is bounded by the
//      grace that child processes get.
//   3. close_all closes service and ledger and calls on_end. The caller then calls daemon_free.
//
// If something is still in progress after STOP_MAX_MS (a child process that does not die), the
// process exits all the same. The ledger has everything that was promised to a caller.
#include "common/exit.h"
#include "common/file.h"
#include "common/log.h"
#include "daemon/daemon_inside.h"
#include "daemon/jobs/answer.h"
#include "daemon/jobs/budgets.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/lifecycle.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/submission.h"
#include "daemon/jobs/wait.h"
#include "daemon/run/compiler.h"
#include "daemon/run/executors.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "daemon/store/blob.h"
#include "daemon/store/ledger.h"
#include "daemon/upkeep/administration.h"
#include <stdlib.h>
#include <unistd.h>

#define STOP_POLL_MS 5    // time between looks whether everything has ended
#define STOP_MAX_MS 15000 // longest time to stop

static void close_all(struct daemon *daemon)
{
    const struct err *error = daemon->error.code != ERR_NONE ? &daemon->error : NULL;

    uv_close((uv_handle_t *)&daemon->tick, NULL);
    uv_close((uv_handle_t *)&daemon->stop, NULL);
    service_close(daemon->parts.service);
    monitor_close(daemon->monitor);
    waits_close(daemon->parts.waits);
    ledger_close(daemon->parts.ledger);
    daemon->config.on_end(daemon->config.owner, error);
}

// Returns whether nothing is in progress that the daemon has to wait for.
static bool is_idle(const struct daemon *daemon)
{
    return !(daemon->dispatch && dispatch_pending(daemon->dispatch) > 0) &&
           !(daemon->parts.lifecycle &&
             (scheduler_busy(daemon->parts.scheduler) || compiler_busy(daemon->parts.compiler))) &&
           completions_pending(daemon->parts.completions) == 0 && !watch_busy(daemon->watch) &&
           !sweeper_busy(&daemon->sweeper) &&
           !(daemon->parts.executors && executors_count(daemon->parts.executors) > 0);
}

static void on_stop_poll(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;

    if (is_idle(daemon)) {
        close_all(daemon);
    } else if (uv_now(daemon->parts.loop) - daemon->stop_since_ms > STOP_MAX_MS) {
        log_event(LOG_ERROR, "stop-incomplete children=%zu",
                  daemon->parts.executors ? executors_count(daemon->parts.executors) : 0);
        executors_kill(daemon->parts.executors);
        _exit(EXIT_SYSTEM);
    }
}

void daemon_stop(struct daemon *daemon)
{
    if (daemon->stopping) {
        return;
    }
    daemon->stopping = true;
    log_event(LOG_NOTICE, "stopping");
    monitor_stopping(daemon->monitor);
    if (daemon->dispatch) {
        dispatch_stop(daemon->dispatch);
    }
    if (daemon->parts.lifecycle) {
        lifecycle_stop(daemon->parts.lifecycle);
        compiler_stop(daemon->parts.compiler);
        setups_stop(daemon->parts.setups);
    }
    administration_stop(daemon->parts.administration);
    watch_stop(daemon->watch);
    discovery_stop(&daemon->discovery);
    sweeper_stop(&daemon->sweeper);
    if (daemon->parts.executors) {
        executors_stop(daemon->parts.executors);
    }
    uv_update_time(daemon->parts.loop);
    daemon->stop_since_ms = uv_now(daemon->parts.loop);
    (void)uv_timer_start(&daemon->stop, on_stop_poll, 0, STOP_POLL_MS);
}

void daemon_stop_when_idle(struct daemon *daemon)
{
    if (!daemon->dispatch) {
        daemon_stop(daemon);
    } else if (!daemon->stop_when_idle) {
        daemon->stop_when_idle = true;
        dispatch_refuse_jobs(daemon->dispatch);
        administration_drain_all(daemon->parts.administration);
    }
}

void daemon_kill_children(struct daemon *daemon)
{
    if (daemon->parts.executors) {
        executors_kill(daemon->parts.executors);
    }
}

// Frees all parts there are. Some are missing when the daemon could not start.
void daemon_remove_scratch(const char *path)
{
    struct err err = ERR_INIT;

    if (file_remove_tree(path, &err) != 0) {
        log_event(LOG_WARNING, "scratch-kept reason=\"%s\"", err.text);
    }
}

void daemon_free(struct daemon *daemon)
{
    if (!daemon) {
        return;
    }
    dispatch_free(daemon->dispatch);
    budgets_free(daemon->parts.budgets);
    submissions_free(daemon->parts.submissions);
    answers_free(daemon->parts.answers);
    completions_free(daemon->parts.completions);
    job_table_free(daemon->parts.jobs);
    counters_release(&daemon->counters);
    lifecycle_free(daemon->parts.lifecycle);
    setups_free(daemon->parts.setups);
    compiler_free(daemon->parts.compiler);
    scheduler_free(daemon->parts.scheduler);
    accounts_free(daemon->parts.accounts);
    watch_free(daemon->watch);
    administration_free(daemon->parts.administration);
    devices_release(&daemon->devices);
    free(daemon->gpu_starts);
    blob_store_free(daemon->parts.blobs);
    executors_free(daemon->parts.executors);
    cgroups_free(daemon->cgroups);
    if (daemon->scratch) {
        daemon_remove_scratch(daemon->scratch);
        free(daemon->scratch);
    }
    if (daemon->lock_fd >= 0) {
        close(daemon->lock_fd);
    }
    free(daemon);
}
