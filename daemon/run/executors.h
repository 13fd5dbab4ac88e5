// Runs of kcast-exec: one plan, one outcome. A run has either a process of its own (the plan on
// stdin, the outcome on stdout until end of file) or a process that stays for more plans
// (prestarted.h). Called by compiler.c, measure.c and the upkeep of devices. The process is not
// trusted: its output and its time are limited, and when a run has ended badly nothing of its
// process is left. Knows nothing of what plans and outcomes mean.
#ifndef DAEMON_RUN_EXECUTORS_H
#define DAEMON_RUN_EXECUTORS_H

#include "daemon/run/child.h"
#include "daemon/run/prestarted.h"

struct executor;  // one run
struct executors; // all runs and processes of one daemon

#define EXECUTOR_REASON_MAX CHILD_REASON_MAX
#define EXECUTOR_READ_HERE ((size_t)256 << 10) // longest outcome that is read on the loop thread

struct executor_end {
    bool ok;              // there is an outcome
    bool stopped;         // executor_stop was called before the end; ok is possible all the same
    bool stuck;           // the process does not even die by SIGKILL and is still there
    struct bytes outcome; // the callee may take it and zero it
    double seconds;       // from when its process was ready and had the plan; 0: it never was
    char reason[EXECUTOR_REASON_MAX]; // one sentence, when not ok or stuck
};

struct executor_config {
    const char *mode;     // first argument of kcast-exec: "compile", "measure", "cuda-probe", …
    const char *argument; // second argument, a GPU's UUID or an interpreter; NULL: none
    bool on_device;       // it is a GPU, of which the process makes a context
    // NULL: a process for this plan alone. Otherwise the process stays and answers more plans of
    // the same mode, argument and keep; all plans with an empty keep share their processes.
    const char *keep;
    bool fresh;                  // with keep: only a process that has answered no plan
    size_t outcome_max;          // bytes of the outcome; the process is killed when it writes more
    uint64_t deadline_ms;        // from when the process has the plan until it is terminated
    uint64_t grace_ms;           // from SIGTERM to SIGKILL
    struct cgroup_limits limits; // of the process and its descendants, with control groups
    // The process is ready and the plan is on its way to it; NULL: nobody is told. Called at most
    // once, perhaps within executor_start, before everything below.
    void (*on_plan)(void *owner);
    // Reads an outcome, once, before on_end. An outcome of more than EXECUTOR_READ_HERE bytes is
    // read on another thread, so the callee stores what it finds where nobody else looks until
    // on_end. With keep, true means that the process must not be used again; on_end is then called
    // after the process has ended. NULL: nothing is read.
    bool (*read)(void *owner, const struct bytes *outcome);
    // Called exactly once, on the loop thread, and never inside executor_start or executor_stop.
    // The process has ended by then, unless it stays for more plans or is stuck.
    void (*on_end)(void *owner, struct executor_end *end);
    void *owner;
};

// As children_create.
MUST_CHECK int executors_create(struct executors **ret, uv_loop_t *loop, const char *path,
                                const char *scratch, struct cgroups *cgroups, struct err *err);
// No process may be left. NULL is fine.
void executors_free(struct executors *executors);
// The number of processes, idle ones included.
size_t executors_count(const struct executors *executors);
// Keeps `count` processes of this mode and argument ready that have answered no plan. Of config
// only mode, argument, limits and grace_ms matter. on_first (prestarted.h) may be NULL. A stand-in
// has no processes and tells nobody.
void executors_prestart(struct executors *executors, const struct executor_config *config,
                        size_t count, prestarted_first *on_first, void *owner);
// Whether a run with config->fresh would have to wait for a process that is being started: of
// config only mode and argument matter. A stand-in never says so.
bool executors_is_starting(const struct executors *executors, const struct executor_config *config);
// Has on_started called whenever that may have changed. Not by a stand-in.
void executors_watch(struct executors *executors, void (*on_started)(void *owner), void *owner);
// Ends idle processes and starts no more of them. Runs under way go on.
void executors_stop(struct executors *executors);
// Sends SIGKILL to every process at once and does not wait, as after a second SIGTERM to the
// daemon. Must not be called from a signal handler.
void executors_kill(struct executors *executors);
// Called once a second, which is one tick: sweeps orphans, ends processes that have been idle for
// long, and tries again to start prestarted processes that could not be started.
void executors_tick(struct executors *executors);

// Executors without processes, for tests. Every plan goes to `start`, which copies what it needs.
// It returns 0, and the test ends the run later by executor_answer, or an error: the run cannot be
// started. The process is ready at once, or after executors_slow_down when the test calls
// executor_is_ready.
struct executor_stand_in {
    int (*start)(void *owner, struct executor *executor, const struct executor_config *config,
                 const struct bytes *plan, struct err *err);
    void (*stop)(void *owner, struct executor *executor); // executor_stop was called; once
    void *owner;
};
struct executors *executors_stand_in(const struct executor_stand_in *stand_in);
void executors_slow_down(struct executors *stand_in);
// The process of a run of such a stand-in is ready.
void executor_is_ready(struct executor *executor);
// Ends a run of a stand-in with ok, stuck, outcome (taken) and reason of *end_taken. The run is
// freed.
void executor_answer(struct executor *executor, struct executor_end *end_taken);

// Ticks until something should be started again; 0: now. A start fails when the host has no
// descriptors, processes or memory left, which is the fault of neither the plan nor a device. After
// the first failure in a row the next start waits for one tick, then two, four, and so on up to
// EXECUTOR_HELD_MAX. Failures while a wait is under way count as the same one.
#define EXECUTOR_HELD_MAX 64
unsigned executors_held(const struct executors *executors);
// Counts as a start that failed. For callers that could not open what a run needs first because the
// host has no descriptors left.
void executors_hold(struct executors *executors);

// Begins a run. *plan_taken is freed in any case. On failure nothing runs and on_end is not called;
// only the host can make it fail, see executors_held.
MUST_CHECK int executor_start(struct executor **ret, struct executors *executors,
                              const struct executor_config *config, struct bytes *plan_taken,
                              struct err *err);
// Sends SIGTERM now and SIGKILL after the grace period, also to a process that would have stayed.
// on_end follows. No effect when it has been called before.
void executor_stop(struct executor *executor);

#endif
