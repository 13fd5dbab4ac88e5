// The monitoring of kcast-worker (--http): /metrics for Prometheus, /healthz and /status.json. Asks
// the engine for its status every MONITOR_ASK_MS and serves the last answer. Owned by the worker.
#ifndef WORKER_MONITOR_H
#define WORKER_MONITOR_H

#include "common/err.h"
#include "worker/engine.h"
#include <uv.h>

#define MONITOR_ASK_MS 5000
#define MONITOR_SILENCE_MS 120000 // after so long without an answer /healthz reports a failure

struct worker_monitor;

struct worker_monitor_config {
    uv_loop_t *loop;
    const char *address; // as in http_server_config; borrowed for the call
    const struct engine_ops *ops;
    void *engine;
    // Adds the fields that only the service knows. *status borrows them.
    void (*complete)(void *owner, struct worker_status *status);
    void *owner;
};

// Listens and begins to ask. Errors are http_server_create's.
MUST_CHECK int worker_monitor_create(struct worker_monitor **ret,
                                     const struct worker_monitor_config *config, struct err *err);
// The address that is listened on, with the real port. Owned by the monitor.
const char *worker_monitor_url(const struct worker_monitor *monitor);
// Must be called before the engine is closed. The monitor frees itself when its handles are closed
// and the engine has answered the last question. NULL is fine.
void worker_monitor_close(struct worker_monitor *monitor);

#endif
