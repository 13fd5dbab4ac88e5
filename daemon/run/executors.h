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
#define EXECUTOR_READ_HERE ((size_t)256 << 10)

struct executor_end {
    bool ok;                          // there is a report
    bool stopped;                     // executor_stop was called before it ended; ok is possible
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
    // Reads a report, once, before on_end, and keeps what it finds in what nobody else touches until
    // then: one of more than EXECUTOR_READ_HERE bytes is read on another thread. With keep, true says
    // that the process must not be used again; its end is awaited then before on_end runs. NULL: there
    // is nothing to be read.
    bool (*read)(void *owner, const struct bytes *outcome);
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
// Once a second, a tick: sweeps orphans, ends idle processes, starts unused processes that could not be started.
void executor_pool_tick(struct executors *pool);

// A pool without processes, for tests: every plan comes to start, which keeps what it needs of it
// (0; or an error: the run cannot be started), and whose end is told by executor_answer later.
struct executor_stand_in {
    int (*start)(void *owner, struct executor *executor, const struct executor_config *config,
                 const struct bytes *plan, struct err *err);
    void (*stop)(void *owner, struct executor *executor); // executor_stop, once
    void *owner;
};
struct executors *executor_pool_stand_in(const struct executor_stand_in *stand_in);
// The end of a run, with these of end: ok, stuck, report (taken), reason. The run is gone then.
void executor_answer(struct executor *executor, struct executor_end *end_taken);

// Ticks until something should be started again; 0: now. A start that fails is the host's misfortune
// (no descriptors, processes or memory left), and neither the plan's nor a device's: the next one
// waits for one tick, then two, four, and so on to EXECUTOR_HELD_MAX.
#define EXECUTOR_HELD_MAX 64
unsigned executor_pool_held(const struct executors *pool);

// On failure nothing runs and on_end is not called; the plan is freed either way. Only the host can
// make it fail, see executor_pool_held.
MUST_CHECK int executor_start(struct executor **ret, struct executors *pool,
                              const struct executor_config *config, struct bytes *plan_taken,
                              struct err *err);
// SIGTERM now, SIGKILL after the grace, also to a process that would have stayed. on_end follows.
// May be called again (no effect).
void executor_stop(struct executor *executor);

#endif
