// Design note.
//
// Up:   lock, ledger, blobs, secret; then from the loop probe, where GPUs are wanted cuda-probe,
//       devices, lifecycle, jobs reloaded, service, READY.
//
// Down: no new requests, parked WAITs answered; lifecycle stopped, children ended; every exchange
//       answered and every end in the ledger; service closed, ledger closed, end.
//
// Going down is a poll of "is anything left?" every few milliseconds rather than a web of
// callbacks: it happens once, and what is waited for is bounded by the grace of the children. If
// something is left after STOP_MAX_MS (a child that does not die), the daemon ends all the same;
// the ledger has everything that was promised.
#include "daemon/daemon.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "daemon/dispatch.h"
#include "daemon/jobs/answer.h"
#include "daemon/jobs/budgets.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/lifecycle.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/jobs/submission.h"
#include "daemon/jobs/wait.h"
#include "daemon/monitor.h"
#include "daemon/reload.h"
#include "daemon/run/compiler.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/counters.h"
#include "daemon/state/job_table.h"
#include "daemon/state/parts.h"
#include "daemon/status.h"
#include "daemon/store/blob.h"
#include "daemon/store/ledger.h"
#include "daemon/upkeep/administration.h"
#include "daemon/upkeep/probing.h"
#include "daemon/upkeep/sweeper.h"
#include "daemon/upkeep/watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TICK_MS 1000
#define STOP_POLL_MS 5
#define STOP_MAX_MS 15000
#define RESIDENT_MAX ((size_t)64 << 20) // results kept in memory
#define EXCHANGES_MAX 1024
#define PARKED_MAX 768
#define MESSAGE_MAX ((size_t)16 << 20)
#define COMPILE_SLOTS_MAX 64

struct daemon {
    struct daemon_config config;
    struct daemon_parts parts; // what they point to is owned here
    int lock_fd;
    struct cgroups *cgroups; // NULL: not delegated
    struct probing probing;
    struct secret secret;
    struct devices devices;
    struct watch *watch;
    struct sweeper sweeper;
    struct dispatch *dispatch;
    struct counters counters;
    struct monitor *monitor; // NULL: not served
    uv_timer_t tick;
    uv_timer_t stop;
    uint64_t stop_since_ms;
    bool vacating;
    bool stopping;
    struct err error; // why it ends
};

// --- down

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

static bool is_quiet(const struct daemon *daemon)
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

    if (is_quiet(daemon)) {
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
    }
    administration_stop(daemon->parts.administration);
    watch_stop(daemon->watch);
    probing_stop(&daemon->probing);
    sweeper_stop(&daemon->sweeper);
    if (daemon->parts.executors) {
        executors_stop(daemon->parts.executors);
    }
    uv_update_time(daemon->parts.loop);
    daemon->stop_since_ms = uv_now(daemon->parts.loop);
    (void)uv_timer_start(&daemon->stop, on_stop_poll, 0, STOP_POLL_MS);
}

void daemon_reload(struct daemon *daemon)
{
    if (!daemon->parts.service || daemon->stopping || !daemon->config.files.tokens) {
        return;
    }
    struct err err = ERR_INIT;
    if (service_reload(daemon->parts.service, &err) == 0) {
        log_event(LOG_NOTICE, "reloaded what=certificates,tokens");
    } else {
        log_event(LOG_ERROR, "reload-failed reason=\"%s\"", err.text);
    }
}

void daemon_vacate(struct daemon *daemon)
{
    if (!daemon->dispatch) {
        daemon_stop(daemon);
    } else if (!daemon->vacating) {
        daemon->vacating = true;
        dispatch_vacate(daemon->dispatch);
        administration_vacate(daemon->parts.administration);
    }
}

void daemon_limit(struct daemon *daemon, uint64_t queue_max, uint64_t jobs_max)
{
    daemon->parts.limits.queue_max = queue_max;
    daemon->parts.limits.jobs_max = jobs_max;
}

void daemon_describe(void *owner, char *text, size_t size)
{
    const struct daemon *daemon = owner;
    const struct job_census *census = job_table_census(daemon->parts.jobs);

    if (daemon->stopping) {
        (void)snprintf(text, size, "stopping");
        return;
    }
    char illness[STATUS_ILLNESS_MAX];
    bool well = status_is_well(&daemon->parts, illness);
    (void)snprintf(
        text, size, "listening on %s; %zu of %zu devices busy, %zu jobs wait%s%s",
        service_url(daemon->parts.service), devices_busy(&daemon->devices), daemon->devices.count,
        census->state[JOB_QUEUED] + census->state[JOB_COMPILING] + census->state[JOB_READY],
        well ? "" : "; not well: ", well ? "" : illness);
}

void daemon_kill_children(struct daemon *daemon)
{
    if (daemon->parts.executors) {
        executors_kill(daemon->parts.executors);
    }
}

// What there is, in whatever state of construction.
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
    blob_store_free(daemon->parts.blobs);
    executors_free(daemon->parts.executors);
    cgroups_free(daemon->cgroups);
    if (daemon->lock_fd >= 0) {
        close(daemon->lock_fd);
    }
    free(daemon);
}

// --- up

static size_t compile_slots(const struct daemon_config *config)
{
    size_t slots = config->compile_jobs > 0 ? config->compile_jobs : config->cores.rest_count;

    return slots < COMPILE_SLOTS_MAX ? slots : COMPILE_SLOTS_MAX;
}

static void on_change(void *owner)
{
    struct daemon *daemon = owner;

    scheduler_kick(daemon->parts.scheduler);
}

static void create_work(struct daemon *daemon)
{
    struct daemon_parts *parts = &daemon->parts;
    struct compiler_events compiler = {.may_start = scheduler_may_compile,
                                       .on_idle = scheduler_compiled};

    parts->scheduler = scheduler_create(parts);
    compiler.owner = parts->scheduler;
    parts->compiler = compiler_create(parts, &compiler);
    parts->setups = setups_create(parts);
    parts->lifecycle = lifecycle_create(parts);
    parts->submissions = submissions_create(parts);
    parts->budgets = budgets_create(parts->accounts, parts->ledger, on_change, daemon);
    daemon->sweeper = (struct sweeper){
        .loop = parts->loop,
        .jobs = parts->jobs,
        .setups = parts->setups,
        .blobs = parts->blobs,
        .max_bytes = daemon->config.blobs_max,
    };
}

// Starts ahead what measurements on GPUs will need; nothing where there are none.
static void warm_up(const struct daemon_parts *parts)
{
    bool any = false;

    for (size_t i = 0; i < parts->devices->count; i++) {
        if (device_is_gpu(&parts->devices->device[i])) {
            run_prestart(parts, &parts->devices->device[i]);
            any = true;
        }
    }
    if (any) {
        compiler_keep_ready(parts->compiler);
    }
}

static int open_service(struct daemon *daemon, struct err *err)
{
    struct service_config service = {
        .url = daemon->config.listen,
        .files = daemon->config.files,
        .exchanges_max = EXCHANGES_MAX,
        .parked_max = PARKED_MAX,
        .message_max = MESSAGE_MAX,
        .epoch = (uint64_t)clock_wall_ns(&clock_system),
        .on_request = dispatch_request,
        .on_refusal = dispatch_refusal,
    };

    daemon->dispatch = dispatch_create(&daemon->parts);
    service.owner = daemon->dispatch;
    int rc = service_create(&daemon->parts.service, daemon->parts.loop, &service, err);
    daemon->parts.started_ns = clock_now_ns(daemon->parts.clock);
    if (rc == 0 && daemon->config.http[0]) {
        rc = monitor_create(&daemon->monitor, daemon->parts.loop, daemon->config.http,
                            &daemon->parts, err);
    }
    daemon->parts.http = daemon->monitor ? monitor_url(daemon->monitor) : NULL;
    return rc;
}

static void on_tick(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;

    lifecycle_tick(daemon->parts.lifecycle);
    compiler_tick(daemon->parts.compiler);
    setups_tick(daemon->parts.setups);
    scheduler_tick(daemon->parts.scheduler);
    administration_tick(daemon->parts.administration);
    if (daemon->vacating && devices_busy(&daemon->devices) == 0) {
        daemon_stop(daemon);
    }
    completions_tick(daemon->parts.completions);
    sweeper_tick(&daemon->sweeper);
    executors_tick(daemon->parts.executors);
}

static void log_ready(const struct daemon *daemon)
{
    const struct daemon_config *config = &daemon->config;
    const struct device_class *device_class = daemon->devices.classes;

    for (; device_class; device_class = device_class->next) {
        log_event(LOG_INFO, "device-class class=\"%s\" language=%s toolchain=\"%s\"",
                  device_class->name, device_class->language, device_class->toolchain);
    }
    if (daemon->monitor) {
        log_event(LOG_INFO, "http url=%s", daemon->parts.http);
    }
    log_event(LOG_NOTICE,
              "ready url=%s devices=%zu compile_slots=%zu sandbox=%s exclusive=%s state=%s",
              service_url(daemon->parts.service), daemon->devices.count,
              daemon->parts.limits.compile_slots, config->sandbox_off ? "off" : "on",
              config->cores.exclusive ? "yes" : "no", config->state_dir);
}

// The probes have told what there is: build the rest and serve.
static int come_up(struct daemon *daemon, struct err *err)
{
    const struct daemon_config *config = &daemon->config;

    create_work(daemon);
    int rc = budgets_load(daemon->parts.accounts, daemon->parts.ledger, err);
    rc = rc == 0 ? reload_jobs(&daemon->parts, err) : rc;
    rc = rc == 0 ? administration_create(&daemon->parts.administration, &daemon->parts, err) : rc;
    rc = rc == 0 ? ledger_start(daemon->parts.ledger, daemon->parts.loop, err) : rc;
    rc = rc == 0 ? open_service(daemon, err) : rc;
    if (rc != 0) {
        return rc;
    }
    reload_requeue(&daemon->parts);
    warm_up(&daemon->parts);
    daemon->watch = watch_create(&daemon->parts);
    (void)uv_timer_start(&daemon->tick, on_tick, TICK_MS, TICK_MS);
    log_ready(daemon);
    config->on_ready(config->owner, service_url(daemon->parts.service));
    return 0;
}

static void on_probed(void *owner, const struct err *error)
{
    struct daemon *daemon = owner;

    if (error) {
        daemon->error = *error;
    }
    if (!daemon->stopping && (error || come_up(daemon, &daemon->error) != 0)) {
        daemon_stop(daemon);
    }
}

static int start_probing(struct daemon *daemon, struct err *err)
{
    struct probing_config probing = {
        .parts = &daemon->parts,
        .device_spec = &daemon->config.device_spec,
        .cores = &daemon->config.cores,
        .on_end = on_probed,
        .owner = daemon,
    };

    return probing_start(&daemon->probing, &probing, err);
}

// What needs no loop: the state directory, its lock, the ledger, the blobs.
static int open_state(struct daemon *daemon, struct err *err)
{
    const char *dir = daemon->config.state_dir;
    char *lock = xasprintf("%s/lock", dir);
    char *path = xasprintf("%s/ledger.db", dir);
    char *blobs = xasprintf("%s/blobs", dir);
    char *secret = xasprintf("%s/secret", dir);
    int rc = file_make_dirs(dir, err);

    if (rc == 0 && (rc = file_lock(&daemon->lock_fd, lock, err)) == ERR_BUSY) {
        rc = err_wrap(err, "another kcastd uses this state directory");
    }
    rc = rc == 0 ? ledger_open(&daemon->parts.ledger, path, daemon->config.page_max, err) : rc;
    if (rc == 0) {
        ledger_limit(daemon->parts.ledger, daemon->config.cache_max);
    }
    rc = rc == 0 ? blob_store_create(&daemon->parts.blobs, daemon->parts.loop, blobs, err) : rc;
    rc = rc == 0 ? secret_open(&daemon->secret, secret, err) : rc;
    free(secret);
    free(blobs);
    free(path);
    free(lock);
    return rc;
}

// Children have limits without groups, so it does not matter to anybody else whether there are any.
static void open_cgroups(struct daemon *daemon)
{
    struct err reason = ERR_INIT;
    char *dir = NULL;
    int rc = cgroup_find_own(&dir, "/proc/self", &reason);

    rc = rc == 0 ? cgroups_create(&daemon->cgroups, dir, &reason) : rc;
    if (rc == 0) {
        log_event(LOG_INFO, "cgroup state=on controllers=\"%s\" dir=%s",
                  cgroups_controllers(daemon->cgroups), dir);
    } else {
        log_event(LOG_INFO, "cgroup state=off reason=\"%s\"", reason.text);
    }
    free(dir);
}

static struct daemon_limits limits_of(const struct daemon_config *config)
{
    return (struct daemon_limits){
        .compile_slots = compile_slots(config),
        .compile_seconds = config->compile_seconds,
        .slack_ms = config->slack_ms,
        .grace_ms = config->grace_ms,
        .queue_max = config->queue_max,
        .jobs_max = config->jobs_max,
        .sandbox_off = config->sandbox_off,
        .exclusive = config->cores.exclusive,
        .share_gpus = config->share_gpus,
    };
}

int daemon_start(struct daemon **ret, uv_loop_t *loop, const struct daemon_config *config,
                 struct err *err)
{
    struct daemon *daemon = xcalloc(1, sizeof(*daemon));

    daemon->config = *config;
    daemon->parts = (struct daemon_parts){
        .loop = loop,
        .clock = &clock_system,
        .limits = limits_of(config),
        .state_dir = config->state_dir,
        .secret = &daemon->secret,
        .devices = &daemon->devices,
        .counters = &daemon->counters,
    };
    daemon->lock_fd = -1;
    daemon->error = (struct err)ERR_INIT;
    int rc = open_state(daemon, err);
    if (rc == 0) {
        open_cgroups(daemon);
        rc = executors_create(&daemon->parts.executors, loop, config->exec_path, daemon->cgroups,
                              err);
    }
    if (rc == 0) {
        daemon->parts.accounts = accounts_create();
        daemon->parts.jobs = job_table_create(RESIDENT_MAX, daemon->parts.accounts);
        daemon->parts.answers = answers_create(&daemon->parts);
        devices_init(&daemon->devices);
        rc = start_probing(daemon, err);
    }
    if (rc != 0) {
        ledger_close(daemon->parts.ledger);
        while (daemon->parts.executors && executors_count(daemon->parts.executors) > 0) {
            (void)uv_run(loop, UV_RUN_ONCE); // handles of a probe that did not start
        }
        daemon_free(daemon);
        return rc;
    }
    daemon->parts.waits = waits_create(loop, answer_due, daemon->parts.answers);
    daemon->parts.completions = completions_create(&daemon->parts);
    (void)uv_timer_init(loop, &daemon->tick);
    (void)uv_timer_init(loop, &daemon->stop);
    daemon->tick.data = daemon;
    daemon->stop.data = daemon;
    *ret = daemon;
    return 0;
}
