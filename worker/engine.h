// The interface of engines. An engine makes forecasts and learns from outcomes. The worker has one
// engine, which --engine chooses from the table in worker/engine.c. An engine owns its part of the
// state directory, its models and its threads, and knows nothing of connections. All functions run
// on the loop thread and do not block it.
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
    bool recalibrate_static; // engine static recalibrates its forecasts, as engine llm always does
    unsigned threads; // on which engine static makes forecasts, beside the one that learns; 0: one
};

// Runs once per call, on the loop thread, never inside the call. On success error is NULL and reply
// points to the struct of the reply message, which is valid during the callback. The error is
// ERR_STOPPED when the engine was closed before it began the call.
typedef void engine_done(void *owner, const struct err *error, const void *reply);

struct engine_ops {
    const char *name;   // the value of --engine; every forecast carries it
    const char *help;   // one line for people
    bool reads_sources; // forecasts follow from sources: only such engines are sent them
    bool screens;       // it answers requests with `screening`; others refuse them
    MUST_CHECK int (*open)(void **ret, const struct engine_config *config, struct err *err);
    // forecast, observe, propose, recall and rank take what *request_take owns and zero the struct.
    // OBSERVE calls take effect in the order in which they were made. A forecast is made with at
    // least the outcomes of the OBSERVE calls that were answered before it was asked for.
    void (*forecast)(void *engine, struct forecast_request *request_take, engine_done *done,
                     void *owner);
    void (*observe)(void *engine, struct observe *request_take, engine_done *done,
                    void *owner); // reply: observed
    // Writes new candidates; reply: propose_reply. NULL when the engine cannot write candidates.
    void (*propose)(void *engine, struct propose_request *request_take, engine_done *done,
                    void *owner);
    // Tells what is known of other problems and devices with the same parameters; reply:
    // recall_reply. NULL when the engine keeps no such thing.
    void (*recall)(void *engine, struct recall_request *request_take, engine_done *done,
                   void *owner);
    // Says which of several candidates go first; reply: rank_reply. NULL when the engine cannot.
    void (*rank)(void *engine, struct rank_request *request_take, engine_done *done, void *owner);
    // reply: worker_status with the fields that the engine knows (engine, forecasts, outcomes,
    // models, endpoints and their sums)
    void (*status)(void *engine, engine_done *done, void *owner);
    // Every open call gets its callback, inside this call or later. The engine frees itself once
    // its work and its handles have ended.
    void (*close)(void *engine);
};

// The engine with this name; NULL when there is none.
const struct engine_ops *engine_find(const char *name);
// The names of all engines, separated by "|".
extern const char engine_choices[];

#endif
