// The service of kcast-worker. Owns the listener, the engine and the monitor: reads requests, hands
// them to the engine and sends its replies. Called by main.c. Knows nothing of how forecasts are
// made.
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
    const char *url;             // to listen on, tcp://127.0.0.1:7411; port 0 picks a free one
    struct identity_files files; // for tls://; the names outlive the worker
    const char *http;            // address for monitoring; NULL or "": no monitoring
    const char *state_dir;       // exists, locked by the caller
    const struct engine_ops *ops;
    const struct llm_config *llm; // NULL: no language models
    bool recalibrate_static;      // as in engine_config
    unsigned threads;             // likewise
};

// Opens the engine's state and listens. On failure everything that was opened is closed once the
// loop has run. *config is not kept.
MUST_CHECK int worker_create(struct worker **ret, const struct worker_config *config,
                             struct err *err);
// The address that is listened on, with the real port. Owned by the worker.
const char *worker_url(const struct worker *worker);
// Reads certificates and tokens again. A failure is logged and changes nothing.
void worker_reload(struct worker *worker);
// The address of the monitoring; NULL when there is none. Owned by the worker.
const char *worker_http(const struct worker *worker);
// Stops listening, drops requests without an answer and closes the engine. Outcomes that were
// acknowledged are on the disk. The struct is freed at once; its handles keep the loop running
// until they are closed. NULL is fine.
void worker_close(struct worker *worker);

#endif
