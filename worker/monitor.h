// What kcast-worker's --http serves: /metrics for Prometheus, /healthz, /status.json. The engine is
// asked for its status now and then; what it said last is what is served.
#ifndef WORKER_MONITOR_H
#define WORKER_MONITOR_H

#include "common/err.h"
#include "worker/engine.h"
#include <uv.h>

#define MONITOR_ASK_MS 5000
#define MONITOR_SILENCE_MS 120000 // then /healthz says that the engine does not answer

struct worker_monitor;

struct worker_monitor_config {
    uv_loop_t *loop;
    const char *address; // as http_server_config
    const struct engine_ops *ops;
    void *engine;
    // Adds what only the service knows; *status borrows what it is given.
    void (*complete)(void *owner, struct worker_status *status);
    void *owner;
};

// With http_server_create's errors.
MUST_CHECK int worker_monitor_create(struct worker_monitor **ret,
                                     const struct worker_monitor_config *config, struct err *err);
const char *worker_monitor_url(const struct worker_monitor *monitor);
// Before the engine is closed. Freed when the loop has closed the handles and the engine has
// answered. NULL is fine.
void worker_monitor_close(struct worker_monitor *monitor);

#endif
