// Design note. The processes take the number of the next task from a shared counter and write the
// outcomes to shared memory, so nothing is sent between them. A task is a variant on a space with a
// seed, a simulation of its own. So the outcomes do not depend on which process runs which task.
// The first task that fails stops all processes before their next task. Each process holds the
// writing end of a pipe, to which nobody writes: it closes when the last one has ended, and until
// then the parent has time to say how far they are.
#include "replay/tasks.h"

#include "client/policy/policy.h"
#include "client/search/pipeline_width.h"
#include "common/mem.h"
#include "common/stats.h"
#include "replay/sim_worker.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STREAM_SEARCH 0x7365617263ULL

struct shared {
    atomic_size_t next;   // number of the next task
    atomic_size_t done;   // how many tasks have ended
    atomic_size_t failed; // number of the failed task, plus 1; 0: none
    struct err err;       // of the failed task
    struct search_outcome outcome[];
};

size_t tasks_index(const struct tasks *t, size_t space, size_t variant, uint64_t seed,
                   uint64_t search)
{
    return (size_t)((((space * t->variants + variant) * t->seeds) + seed) * t->searches + search);
}

size_t tasks_count(const struct tasks *t)
{
    return tasks_index(t, t->spaces, 0, 0, 0);
}

// As a search does that finds the simulated daemon and worker.
static void settle_width(const struct tasks *t, struct sim_search_config *config)
{
    struct pipeline_capacity capacity = {
        .devices = t->sim_daemon.devices,
        .compile_slots = t->sim_daemon.compile_slots,
        .worker_seconds = config->forecaster != SIM_FORECASTER_NONE ? SIM_WORKER_FORECAST_S : NAN,
        .compares_points = config->forecaster != SIM_FORECASTER_NONE};
    struct pipeline_width width = {
        .batch = config->batch, .wide = config->wide, .lag = config->lag};

    pipeline_width_settle(&width, policy_find(config->policy), &capacity);
    config->batch = width.batch;
    config->wide = width.wide;
    config->widest = width.widest;
    config->lag = width.lag;
    config->devices = capacity.devices;
}

static struct sim_search_config config_of(const struct tasks *t, size_t space, size_t variant,
                                          uint64_t seed, uint64_t search)
{
    struct sim_search_config config = t->common;

    config.recorded = t->space[space];
    config.policy = t->variant[variant].policy;
    config.strategy = t->variant[variant].strategy;
    config.forecaster = t->variant[variant].forecaster;
    config.seed = t->first_seed + seed; // the same for every variant
    if (search > 0) {
        config.seed = stats_philox(config.seed, STREAM_SEARCH, search);
    }
    if (!t->variant[variant].method) {
        settle_width(t, &config);
    }
    if (!isnan(t->budget_share)) {
        config.budget_seconds = t->budget_share * recorded_space_seconds(config.recorded);
    }
    return config;
}

// Turns the simulation until all searches are done.
static int run_until_done(struct sim *sim, struct sim_search **searches, size_t count,
                          struct err *err)
{
    size_t done = 0;

    for (size_t i = 0; i < count; i++) {
        done += sim_search_done(searches[i]);
    }
    int rc = 0;
    while (rc == 0 && done < count) {
        if (!sim_step(sim)) {
            return err_set(err, ERR_INTERNAL,
                           "a replay has nothing to wait for and is not at its end");
        }
        done = 0;
        for (size_t i = 0; i < count && rc == 0; i++) {
            rc = sim_search_advance(searches[i], err);
            done += sim_search_done(searches[i]);
        }
    }
    return rc;
}

static int run_pipeline(const struct tasks *t, size_t space, size_t variant, uint64_t seed,
                        struct search_outcome *outcome, struct err *err)
{
    struct sim_search **searches = xcalloc(t->searches, sizeof(*searches));
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon = sim_daemon_create(sim, &t->sim_daemon);
    int rc = 0;

    for (uint64_t i = 0; i < t->searches && rc == 0; i++) {
        struct sim_search_config config = config_of(t, space, variant, seed, i);

        rc = sim_search_create(&searches[i], sim, sim_daemon, &config, err);
    }
    if (rc == 0) {
        rc = run_until_done(sim, searches, t->searches, err);
    }
    for (uint64_t i = 0; i < t->searches; i++) {
        if (rc == 0) {
            sim_search_outcome(searches[i], &outcome[i]);
        }
        sim_search_free(searches[i]);
    }
    sim_daemon_free(sim_daemon);
    sim_free(sim);
    free(searches);
    return rc;
}

static int run_method(const struct tasks *t, size_t space, size_t variant, uint64_t seed,
                      struct search_outcome *outcome, struct err *err)
{
    int rc = 0;

    for (uint64_t i = 0; i < t->searches && rc == 0; i++) {
        struct sim_search_config config = config_of(t, space, variant, seed, i);
        struct method_search search = {.recorded = config.recorded,
                                       .variant = t->variant[variant].name,
                                       .seed = config.seed,
                                       .budget_seconds = config.budget_seconds,
                                       .sequences = t->sequences};

        rc = t->variant[variant].method->run(&search, &outcome[i], err);
    }
    return rc;
}

// Runs task number n.
static int run_task(const struct tasks *t, size_t n, struct search_outcome *all, struct err *err)
{
    uint64_t seed = n % t->seeds;
    size_t variant = n / t->seeds % t->variants, space = (size_t)(n / t->seeds / t->variants);
    struct search_outcome *outcome = &all[tasks_index(t, space, variant, seed, 0)];
    int rc = (t->variant[variant].method ? run_method : run_pipeline)(t, space, variant, seed,
                                                                      outcome, err);

    if (rc != 0) {
        err_wrap(err, "%s, %s, seed %llu", recorded_space_name(t->space[space]),
                 t->variant[variant].name, (unsigned long long)(t->first_seed + seed));
        return rc;
    }
    for (uint64_t i = 0; i < t->searches; i++) {
        double budget = config_of(t, space, variant, seed, i).budget_seconds;

        outcome[i].given_seconds = isfinite(budget) ? budget : outcome[i].device_seconds;
    }
    return 0;
}

static void work(const struct tasks *t, struct shared *shared)
{
    size_t total = t->spaces * t->variants * t->seeds;

    for (size_t n = atomic_fetch_add(&shared->next, 1);
         n < total && atomic_load(&shared->failed) == 0; n = atomic_fetch_add(&shared->next, 1)) {
        struct err err = ERR_INIT;
        size_t none = 0;

        if (run_task(t, n, shared->outcome, &err) != 0 &&
            atomic_compare_exchange_strong(&shared->failed, &none, n + 1)) {
            shared->err = err;
        }
        atomic_fetch_add(&shared->done, 1);
    }
}

static int start_processes(const struct tasks *t, struct shared *shared, pid_t *pid,
                           struct err *err)
{
    pid_t parent = getpid();

    for (uint64_t i = 0; i < t->processes; i++) {
        pid[i] = fork();
        if (pid[i] < 0) {
            return err_set_errno(err, ERR_SYSTEM, errno, "cannot start a process for replaying");
        }
        if (pid[i] == 0) {
            if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) {
                work(t, shared);
            }
            _exit(0);
        }
    }
    return 0;
}

// Says how far the processes are, until nobody has the writing end of the pipe any more.
static void watch_processes(const struct tasks *t, struct shared *shared, int pipe)
{
    struct pollfd end = {.fd = pipe};
    bool running = t->on_tick;

    while (running) {
        running = poll(&end, 1, TASKS_TICK_MS) == 0;
        t->on_tick(t->owner, atomic_load(&shared->done) * t->searches, tasks_count(t));
    }
}

// Waits for all processes. Fails when one of them was ended by a signal.
static int await_processes(const struct tasks *t, pid_t *pid, struct err *err)
{
    int rc = 0;

    for (uint64_t i = 0; i < t->processes; i++) {
        if (pid[i] <= 0) {
            continue;
        }
        int how = 0;
        while (waitpid(pid[i], &how, 0) < 0 && errno == EINTR) {
        }
        if (how != 0 && rc == 0) {
            rc = err_set(err, ERR_INTERNAL, "a process for replaying ended by signal %d",
                         WIFSIGNALED(how) ? WTERMSIG(how) : 0);
        }
    }
    return rc;
}

int tasks_run(const struct tasks *t, struct search_outcome *outcome, struct err *err)
{
    size_t count = tasks_count(t), size = sizeof(struct shared) + count * sizeof(*outcome);
    struct shared *shared =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED) {
        return err_set_errno(err, ERR_SYSTEM, errno, "no memory for %zu outcomes", count);
    }
    pid_t *pid = xcalloc(t->processes, sizeof(*pid));
    int end[2] = {-1, -1};
    int rc = 0;
    if (pipe2(end, O_CLOEXEC) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "cannot start processes for replaying");
        goto out;
    }
    rc = start_processes(t, shared, pid, err);
    (void)close(end[1]);
    watch_processes(t, shared, end[0]);
    struct err await_err = ERR_INIT;
    int await_rc = await_processes(t, pid, &await_err);
    if (rc != 0) {
        goto out;
    }
    if (await_rc != 0) {
        rc = err_set(err, await_err.code, "%s", await_err.text);
        goto out;
    }
    if (atomic_load(&shared->failed) != 0) {
        rc = err_set(err, shared->err.code, "%s", shared->err.text);
        goto out;
    }
    memcpy(outcome, shared->outcome, count * sizeof(*outcome));
out:
    if (end[0] >= 0) {
        (void)close(end[0]);
    }
    (void)munmap(shared, size);
    free(pid);
    return rc;
}
