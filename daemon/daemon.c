// Design note. A daemon starts in these steps:
//
//   1. daemon_start: state directory and its lock, ledger, blob store, secret, control groups,
//      executor pool, job table, device discovery.
//   2. finish_start, when discovery has found the devices: scheduler, compiler, lifecycle and what
//      belongs to them; accounts, jobs and administration from the ledger; the ledger's thread; the
//      service.
//   3. Unfinished jobs begin again, and the processes of GPUs are started, one after the other. A
//      GPU takes jobs when its first one is ready. on_ready is called when the first device of all
//      takes jobs, so that what is said to be ready can serve; the others join later.
//
// daemon_stop.c has the way down.
#include "daemon/daemon.h"
#include "common/clock.h"
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
#include "daemon/reload.h"
#include "daemon/run/compiler.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/job_table.h"
#include "daemon/status.h"
#include "daemon/store/blob.h"
#include "daemon/store/ledger.h"
#include "daemon/upkeep/administration.h"
#include <stdio.h>
#include <stdlib.h>

#define TICK_MS 1000                       // time between calls of the parts' tick functions
#define RESIDENT_MAX ((size_t)64 << 20)    // bytes of results kept in memory
#define BLOBS_IN_MEMORY ((size_t)32 << 20) // bytes of blobs that were used lately
#define EXCHANGES_MAX 1024                 // open requests
#define PARKED_MAX 768                     // parked requests among them
#define MESSAGE_MAX ((size_t)16 << 20)     // bytes of a message
#define COMPILE_SLOTS_MAX 64               // compilations at the same time

static size_t compile_slots(const struct daemon_config *config, const struct devices *devices)
{
    size_t gpus = 0;

    for (size_t i = 0; i < devices->count; i++) {
        gpus += device_is_gpu(&devices->device[i]);
    }
    size_t slots =
        config->compile_jobs > 0 ? config->compile_jobs : cores_for_compiling(&config->cores, gpus);
    return slots < COMPILE_SLOTS_MAX ? slots : COMPILE_SLOTS_MAX;
}

static void on_budget_change(void *owner)
{
    struct daemon *daemon = owner;

    scheduler_wake(daemon->parts.scheduler);
}

static void create_parts(struct daemon *daemon)
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
    parts->budgets = budgets_create(parts->accounts, parts->ledger, on_budget_change, daemon);
    daemon->sweeper = (struct sweeper){
        .loop = parts->loop,
        .jobs = parts->jobs,
        .setups = parts->setups,
        .blobs = parts->blobs,
        .max_bytes = daemon->config.blobs_max,
    };
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
    if (daemon->stop_when_idle && devices_busy(&daemon->devices) == 0) {
        daemon_stop(daemon);
    }
    completions_tick(daemon->parts.completions);
    sweeper_tick(&daemon->sweeper);
    executors_tick(daemon->parts.executors);
}

static void log_ready(const struct daemon *daemon, size_t starting)
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
              "ready url=%s devices=%zu starting=%zu compile_slots=%zu sandbox=%s exclusive=%s"
              " state=%s",
              service_url(daemon->parts.service), daemon->devices.count, starting,
              daemon->parts.limits.compile_slots, config->sandbox_off ? "off" : "on",
              config->cores.exclusive ? "yes" : "no", config->state_dir);
}

// Says that the daemon is ready when a device can serve, or none is being started.
static void announce(struct daemon *daemon)
{
    size_t starting = 0;

    for (size_t i = 0; i < daemon->devices.count; i++) {
        starting += daemon->devices.device[i].starting;
    }
    if (daemon->announced || daemon->stopping ||
        (starting > 0 && starting == daemon->devices.count)) {
        return;
    }
    daemon->announced = true;
    log_ready(daemon, starting);
    daemon->config.on_ready(daemon->config.owner, service_url(daemon->parts.service));
}

// A GPU whose process does not start takes jobs as well: they are lost on it, and so it is found at
// fault (device_failed).
static void on_gpu_started(void *owner, const char *failure)
{
    struct gpu_start *start = owner;

    (void)failure; // it is in the log
    device_started(start->device);
    scheduler_wake(start->daemon->parts.scheduler);
    announce(start->daemon);
}

// Starts processes for measurements and compilations on GPUs ahead of the first job. No-op without
// GPUs.
static void prestart_executors(struct daemon *daemon)
{
    const struct devices *devices = &daemon->devices;
    bool any = false;

    daemon->gpu_starts = xcalloc(devices->count + 1, sizeof(*daemon->gpu_starts));
    for (size_t i = 0; i < devices->count; i++) {
        struct device *device = &devices->device[i];
        struct gpu_start *start = &daemon->gpu_starts[i];

        if (device_is_gpu(device)) {
            *start = (struct gpu_start){.daemon = daemon, .device = device};
            device_starts(device);
            any = true;
        }
    }
    for (size_t i = 0; i < devices->count; i++) {
        if (daemon->gpu_starts[i].device) {
            run_prestart(&daemon->parts, daemon->gpu_starts[i].device, on_gpu_started,
                         &daemon->gpu_starts[i]);
        }
    }
    if (any) {
        compiler_keep_ready(daemon->parts.compiler);
    }
}

// Makes the parts that need the devices, reloads the ledger, and serves.
static int finish_start(struct daemon *daemon, struct err *err)
{
    daemon->parts.limits.compile_slots = compile_slots(&daemon->config, &daemon->devices);
    create_parts(daemon);
    int rc = budgets_load(daemon->parts.accounts, daemon->parts.ledger, err);
    rc = rc == 0 ? reload_jobs(&daemon->parts, err) : rc;
    rc = rc == 0 ? administration_create(&daemon->parts.administration, &daemon->parts, err) : rc;
    rc = rc == 0 ? ledger_start(daemon->parts.ledger, daemon->parts.loop, err) : rc;
    rc = rc == 0 ? open_service(daemon, err) : rc;
    if (rc != 0) {
        return rc;
    }
    prestart_executors(daemon);
    reload_requeue(&daemon->parts);
    daemon->watch = watch_create(&daemon->parts);
    (void)uv_timer_start(&daemon->tick, on_tick, TICK_MS, TICK_MS);
    sweeper_tick(&daemon->sweeper); // counts what is there; blobs wait for that
    announce(daemon);
    return 0;
}

static void on_discovered(void *owner, const struct err *error)
{
    struct daemon *daemon = owner;

    if (error) {
        daemon->error = *error;
    }
    if (!daemon->stopping && (error || finish_start(daemon, &daemon->error) != 0)) {
        daemon_stop(daemon);
    }
}

static int start_discovery(struct daemon *daemon, struct err *err)
{
    struct discovery_config discovery = {
        .parts = &daemon->parts,
        .device_spec = &daemon->config.device_spec,
        .cores = &daemon->config.cores,
        .on_end = on_discovered,
        .owner = daemon,
    };

    return discovery_start(&daemon->discovery, &discovery, err);
}

// Opens the state directory: its lock, the ledger, the blob store and the secret.
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
    if (rc == 0) {
        uint64_t max = daemon->config.blobs_max;

        blob_store_remember(daemon->parts.blobs, BLOBS_IN_MEMORY);
        blob_store_limit(daemon->parts.blobs, max, max / 100 * daemon->config.blobs_share);
    }
    rc = rc == 0 ? secret_open(&daemon->secret, secret, err) : rc;
    free(secret);
    free(blobs);
    free(path);
    free(lock);
    return rc;
}

// Makes the folder and gives its absolute path, because kcast-exec may work elsewhere.
static int make_folder(const char *path, char **ret, struct err *err)
{
    int rc = file_make_dirs(path, err);

    if (rc != 0) {
        return rc;
    }
    *ret = realpath(path, NULL);
    return *ret ? 0 : err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
}

// Makes the folder where processes of GPUs keep the executor's own kernels (KCAST_KERNELS in
// executor/gpu/device/kernels.h), unless the environment names one.
static int open_kernels(const struct daemon *daemon, struct err *err)
{
    char *path = xasprintf("%s/kernels", daemon->config.state_dir), *absolute = NULL;
    int rc = getenv("KCAST_KERNELS") ? 0 : make_folder(path, &absolute, err);

    if (absolute && setenv("KCAST_KERNELS", absolute, 0) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
    }
    free(absolute);
    free(path);
    return rc;
}

// Makes the folder for temporary files of compilations without a sandbox; with one they are in
// memory. What a compilation that was killed has left there goes.
static int open_scratch(struct daemon *daemon, struct err *err)
{
    char *path = xasprintf("%s/scratch", daemon->config.state_dir);
    int rc = 0;

    daemon_remove_scratch(path);
    if (daemon->config.sandbox_off) {
        rc = make_folder(path, &daemon->scratch, err);
    }
    free(path);
    return rc;
}

// Opens control groups if they are delegated. Without them child processes have resource limits.
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
        .compile_seconds = config->compile_seconds,
        .slack_ms = config->slack_ms,
        .grace_ms = config->grace_ms,
        .queue_max = config->queue_max,
        .jobs_max = config->jobs_max,
        .python = config->python,
        .sandbox_off = config->sandbox_off,
        .exclusive = config->cores.exclusive,
        .share_gpus = config->share_gpus,
        .no_unsealed = config->no_unsealed,
        .share_processes = config->share_processes,
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
    rc = rc == 0 ? open_scratch(daemon, err) : rc;
    rc = rc == 0 ? open_kernels(daemon, err) : rc;
    if (rc == 0) {
        open_cgroups(daemon);
        rc = executors_create(&daemon->parts.executors, loop, config->exec_path, daemon->scratch,
                              daemon->cgroups, err);
    }
    if (rc == 0) {
        daemon->parts.accounts = accounts_create();
        daemon->parts.jobs = job_table_create(RESIDENT_MAX, daemon->parts.accounts);
        job_table_set_clock(daemon->parts.jobs, daemon->parts.clock);
        daemon->parts.answers = answers_create(&daemon->parts);
        devices_init(&daemon->devices);
        rc = start_discovery(daemon, err);
    }
    if (rc != 0) {
        ledger_close(daemon->parts.ledger);
        while (daemon->parts.executors && executors_count(daemon->parts.executors) > 0) {
            // Closes the handles of a probe that could not be started.
            (void)uv_run(loop, UV_RUN_ONCE);
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

// --- while it runs

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
