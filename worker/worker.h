// kcast-worker's service: owns the listener and the engine; reads requests, hands them to the
// engine, answers. Knows nothing of how forecasts are made.
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "common/clock.h"
#include "common/err.h"
#include "net/auth/identity.h"
#include "worker/engine.h"
#include <uv.h>

struct worker;

struct worker_config {
    uv_loop_t *loop;
    const struct clock *clock;
    const char *url;             // tcp://127.0.0.1:7411; port 0 picks a free one
    struct identity_files files; // of tls://; the names outlive the worker
    const char *http;            // address for monitoring; NULL or "": not served
    const char *state_dir;       // exists, locked by the caller
    const struct engine_ops *ops;
    const struct llm_config *llm; // NULL: no language model
    bool recalibrate_static;      // as in engine_config
};

// Opens the engine's state and listens. On failure nothing is left open once the loop has run.
MUST_CHECK int worker_create(struct worker **ret, const struct worker_config *config,
                             struct err *err);
const char *worker_url(const struct worker *worker); // with the real port
// Reads certificates and tokens again; what cannot be read is logged, and nothing changes.
void worker_reload(struct worker *worker);
// Where monitoring is served; NULL when it is not.
const char *worker_http(const struct worker *worker);
// Stops listening, drops what is unanswered, closes the engine. What was acknowledged is on the
// disk. Freed at once; the loop ends when nothing of it is left.
void worker_close(struct worker *worker);

#endif
