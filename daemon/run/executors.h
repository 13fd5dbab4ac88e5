// Runs of kcast-exec: one plan, one report. Either in a process of its own (the plan on stdin, the
// report on stdout, end of file), or in one that stays for more plans (daemon/run/prestarted.h). The child is
// not trusted: what it prints is bounded, how long it takes is bounded, and when a run has ended
// badly nothing of its process is left. Knows nothing of what plans and reports mean.
#ifndef DAEMON_RUN_EXECUTORS_H
#define DAEMON_RUN_EXECUTORS_H

#include "daemon/run/child.h"

struct executor;  // one run
struct executors; // all of one daemon

#define EXECUTOR_REASON_MAX CHILD_REASON_MAX

struct executor_end {
    bool ok;                          // there is a report
    bool stopped;                     // executor_stop was called before it ended
    bool stuck;                       // its process does not even die by SIGKILL; it is still there
    struct bytes outcome;             // the callee may take it and zero it
    double seconds;                   // from start to end, waiting for the process included
    char reason[EXECUTOR_REASON_MAX]; // one sentence, when not ok or stuck
};

struct executor_config {
    const char *mode;     // "compile", "measure", "probe", "cuda-measure", …
    const char *argument; // after the mode; NULL: none
    // NULL: a process for this plan alone. Else the process stays and answers more plans of the
    // same mode, argument and keep; "": one that serves whoever comes.
    const char *keep;
    bool fresh;           // with keep: in a process that has answered no plan
    size_t outcome_max;   // bytes of the report; one more and the process is killed
    uint64_t deadline_ms; // from when the process has the plan; then SIGTERM, grace, SIGKILL
    uint64_t grace_ms;
    struct cgroup_limits limits; // of the process and all that comes of it, where there are groups
    // With keep: whether the process must not be used again after this report. Its end is awaited
    // then before on_end runs. NULL: never.
    bool (*is_last)(void *owner, const struct bytes *outcome);
    // Runs exactly once, on the loop thread, never inside executor_start or executor_stop. Not
    // before the process is gone, except when it stays to answer more (or is stuck).
    void (*on_end)(void *owner, struct executor_end *end);
    void *owner;
};

// As children_create.
MUST_CHECK int executor_pool_create(struct executors **ret, uv_loop_t *loop, const char *path,
                                    struct cgroups *cgroups, struct err *err);
void executor_pool_free(struct executors *pool);          // no process may be left; NULL is fine
size_t executor_pool_count(const struct executors *pool); // processes, idle ones included
// Keeps count processes of config's mode and argument ready that no plan has used. Of config only
// these and limits and grace count.
void executors_prestart(struct executors *pool, const struct executor_config *config, size_t count);
// Ends idle processes and starts no more of them; runs under way are not touched.
void executor_pool_stop(struct executors *pool);
// SIGKILL to everything at once, without waiting: for a second SIGTERM. Signal-safe it is not.
void executor_pool_kill(struct executors *pool);
// Once a second: sweeps orphans, ends idle processes, starts unused processes that could not be started.
void executor_pool_tick(struct executors *pool);

// On failure nothing runs and on_end is not called; the plan is freed either way.
MUST_CHECK int executor_start(struct executor **ret, struct executors *pool,
                              const struct executor_config *config, struct bytes *plan_taken,
                              struct err *err);
// SIGTERM now, SIGKILL after the grace, also to a process that would have stayed. on_end follows.
// May be called again (no effect).
void executor_stop(struct executor *executor);

#endif
