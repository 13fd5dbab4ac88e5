// What makes forecasts. The worker has one engine, chosen by --engine from the table in
// worker/engine.c; an engine owns its part of the state directory, its models and its threads. All
// functions run on the loop thread and do not block it.
#ifndef WORKER_ENGINE_H
#define WORKER_ENGINE_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <uv.h>

struct llm_config;

struct engine_config {
    uv_loop_t *loop;
    const char *state_dir;        // exists, and no other process uses it
    const struct llm_config *llm; // language models (worker/llm/llm.h); NULL: none
    bool recalibrate_static;      // by its own record; those of language models always are
};

// Runs once per call, on the loop thread, never inside the call. error is NULL on success, and
// reply then points to the reply message's struct, valid during the callback. ERR_STOPPED when the
// engine was closed before the call's turn.
typedef void engine_done(void *owner, const struct err *error, const void *reply);

struct engine_ops {
    const char *name; // for --engine, and in every forecast
    const char *help; // one line
    bool
        reads_sources; // its forecasts follow from sources, which callers send to such engines only
    MUST_CHECK int (*open)(void **ret, const struct engine_config *config, struct err *err);
    // Take *request (its insides; the struct is zeroed). OBSERVEs take effect in the order in which
    // they were made; a forecast knows at least those that were answered before it was asked for.
    void (*forecast)(void *engine, struct forecast_request *request_take, engine_done *done,
                     void *owner);
    void (*observe)(void *engine, struct observe *request_take, engine_done *done,
                    void *owner); // reply: observed
    // New candidates; reply: propose_reply. NULL: this engine writes none.
    void (*propose)(void *engine, struct propose_request *request_take, engine_done *done,
                    void *owner);
    // reply: worker_status with what the engine knows (engine, forecasts, outcomes, models)
    void (*status)(void *engine, engine_done *done, void *owner);
    // Calls that are open get their callback first. The engine is gone when the loop has nothing of
    // it left.
    void (*close)(void *engine);
};

// NULL when there is none of that name.
const struct engine_ops *engine_find(const char *name);
// The names, separated by "|".
extern const char engine_choices[];

#endif
