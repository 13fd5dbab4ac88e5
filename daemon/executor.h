// Runs of kcast-exec: one child process, one plan to its stdin, one report from its stdout. The
// child is not trusted: what it prints is bounded, how long it lives is bounded, and when it has
// gone nothing of it is left. Knows nothing of what plans and reports mean.
#ifndef DAEMON_EXECUTOR_H
#define DAEMON_EXECUTOR_H

#include "common/err.h"
#include "common/mem.h"
#include "daemon/cgroup.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct executor;
struct executor_pool; // all executors of one daemon

#define EXECUTOR_REASON_MAX 512

struct executor_end {
    bool ok;                          // exit code 0, and all of stdout was read
    bool stopped;                     // executor_stop was called before it ended
    bool stuck;                       // it does not even die by SIGKILL; it is still there
    struct bytes report;              // stdout; the callee may take it and zero it
    double seconds;                   // from start to the last of its handles
    char reason[EXECUTOR_REASON_MAX]; // one sentence, when not ok
};

struct executor_config {
    const char *mode;     // "compile", "measure", "probe"
    size_t report_max;    // bytes of stdout; one more and it is killed
    uint64_t deadline_ms; // from now; then SIGTERM, grace, SIGKILL
    uint64_t grace_ms;
    struct cgroup_limits limits; // of the child and all that comes of it, where there are groups
    // Runs exactly once, on the loop thread, never inside executor_start or executor_stop.
    void (*on_end)(void *owner, struct executor_end *end);
    void *owner;
};

// path: of kcast-exec. cgroups: each child gets a group there; NULL: none; it stays the caller's
// and outlives the pool. Makes this process the reaper of orphaned descendants.
MUST_CHECK int executor_pool_create(struct executor_pool **ret, uv_loop_t *loop, const char *path,
                                    struct cgroups *cgroups, struct err *err);
void executor_pool_free(struct executor_pool *pool); // no executor may be left; NULL is fine
size_t executor_pool_count(const struct executor_pool *pool);
// SIGKILL to everything at once, without waiting: for a second SIGTERM. Signal-safe it is not.
void executor_pool_kill(struct executor_pool *pool);
// Ends orphans of executors that are gone, and removes their groups. Called after each end; also by
// whoever wants to be sure.
void executor_pool_sweep(struct executor_pool *pool);

// Starts a child that reads *plan_taken. On failure nothing runs and on_end is not called; the plan
// is freed either way.
MUST_CHECK int executor_start(struct executor **ret, struct executor_pool *pool,
                              const struct executor_config *config, struct bytes *plan_taken,
                              struct err *err);
// SIGTERM now, SIGKILL after the grace. on_end follows. May be called again (no effect).
void executor_stop(struct executor *executor);

#endif
