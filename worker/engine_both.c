// Design note. This engine owns one engine llm and one engine static and passes every call on.
//
// FORECAST goes to engine llm first. The raw forecast of the language models for each candidate
// (forecast.raw) is then put beside the candidate's facts (candidate_facts.raw) and goes to engine
// static, which treats it as four more features (worker/model/feature.h). The reply for a candidate
// is
//   - engine static's, where its model has been trained;
//   - otherwise engine llm's, recalibrated by its history, where a language model answered;
//   - otherwise engine static's forecast without a model, with confidence 0 and a reason.
// Where no language model answered, the four features are missing and engine static forecasts
// without them.
//
// A screening, which compares hundreds of candidates before any is compiled, is engine static's
// alone: its model for that knows parameters and facts about sources, and no language model is
// asked. Questions to language models are for candidates that were chosen.
//
// The forecast carries the raw forecast of the language models, and it comes back with the outcome.
// OBSERVE goes to both engines. Each keeps the outcome in a file of its own (llm.db, worker.db), so
// that a restarted worker knows the same. OBSERVE is answered when both have the outcomes. When
// it failed half-way and is repeated, each engine adds only what it lacks.
#include "worker/engine_both.h"

#include "common/mem.h"
#include "worker/llm/engine_llm.h"
#include "worker/llm/llm.h"
#include "worker/model/engine_static.h"
#include <stdlib.h>
#include <string.h>

#define ENGINE_NAME "both"

struct engine {
    void *llm, *static_part; // the parts: an engine_llm, an engine_static
    size_t open;             // calls that have not been answered
    bool closing;
};

// One call on its way through the two parts. Only the messages of its kind are filled.
struct call {
    struct engine *engine;
    engine_done *done;
    void *owner;
    struct forecast_request request; // for engine static
    struct observe observe;          // for engine static
    struct forecast_reply llm_reply;
    struct worker_status llm_status;
    uint64_t alarms; // of the language models' forecasts
};

static struct call *begin(struct engine *engine, engine_done *done, void *owner)
{
    struct call *call = xcalloc(1, sizeof(*call));

    call->engine = engine;
    call->done = done;
    call->owner = owner;
    engine->open++;
    return call;
}

// Frees the engine when it is closing and no call is open.
static void free_if_over(struct engine *engine)
{
    if (engine->closing && engine->open == 0) {
        free(engine);
    }
}

static void finish(struct call *call, const struct err *error, const void *reply)
{
    struct engine *engine = call->engine;

    call->done(call->owner, error, error ? NULL : reply);
    message_clear(&forecast_request_message, &call->request);
    message_clear(&observe_message, &call->observe);
    message_clear(&forecast_reply_message, &call->llm_reply);
    message_clear(&worker_status_message, &call->llm_status);
    free(call);
    engine->open--;
    free_if_over(engine);
}

// Replaces *to by a copy of from (NULL: by nothing). What a client put there is thrown away, since
// only this engine knows what the language models forecast.
static void copy_raw(struct raw_forecast **to, const struct raw_forecast *from)
{
    if (*to) {
        message_clear(&raw_forecast_message, *to);
        free(*to);
        *to = NULL;
    }
    if (from) {
        *to = xcalloc(1, sizeof(**to));
        message_copy(&raw_forecast_message, *to, from);
    }
}

// ---- FORECAST ----

static void replace_text(char **to, const char *from)
{
    free(*to);
    *to = from ? xstrdup(from) : NULL;
}

// Merges the two forecasts of one candidate into *ret (uninitialised before).
static void merge(struct forecast *ret, const struct forecast *trained, const struct forecast *llm)
{
    bool has_model = trained->trained_rows > 0;

    message_copy(&forecast_message, ret, has_model || !llm->raw ? trained : llm);
    free(ret->engine);
    ret->engine = xstrdup(ENGINE_NAME);
    copy_raw(&ret->raw, llm->raw);
    replace_text(&ret->rung, llm->rung);
    ret->seconds = llm->seconds + trained->seconds;
    ret->input_tokens = llm->input_tokens;
    ret->output_tokens = llm->output_tokens;
    ret->cost = llm->cost;
    ret->cached_tokens = llm->cached_tokens;
    ret->requests = llm->requests;
    replace_text(&ret->endpoint, llm->endpoint);
    replace_text(&ret->way, llm->way);
    ret->map_version = llm->map_version;
    if (!has_model && !llm->raw && llm->reason) {
        // Both engines gave a reason. The language model's is the one that somebody can act on.
        free(ret->reason);
        ret->reason = xstrdup(llm->reason);
    }
}

static void on_static_forecast(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;
    const struct forecast_reply *trained = reply;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    struct forecast_reply both;
    message_init(&forecast_reply_message, &both);
    both.forecasts_count = trained->forecasts_count;
    both.forecasts = xcalloc(both.forecasts_count + 1, sizeof(*both.forecasts));
    for (size_t i = 0; i < both.forecasts_count; i++) {
        merge(&both.forecasts[i], &trained->forecasts[i], &call->llm_reply.forecasts[i]);
    }
    finish(call, NULL, &both);
    message_clear(&forecast_reply_message, &both);
}

static void on_llm_forecast(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    message_copy(&forecast_reply_message, &call->llm_reply, reply);
    for (size_t i = 0; i < call->llm_reply.forecasts_count; i++) {
        copy_raw(&call->request.candidates[i].raw, call->llm_reply.forecasts[i].raw);
    }
    engine_static.forecast(call->engine->static_part, &call->request, on_static_forecast, call);
}

static void on_screened(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;
    struct forecast_reply named;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    message_copy(&forecast_reply_message, &named, reply);
    for (size_t i = 0; i < named.forecasts_count; i++) {
        replace_text(&named.forecasts[i].engine, ENGINE_NAME);
    }
    finish(call, NULL, &named);
    message_clear(&forecast_reply_message, &named);
}

static void both_forecast(void *opaque, struct forecast_request *request_take, engine_done *done,
                          void *owner)
{
    struct engine *engine = opaque;
    struct call *call = begin(engine, done, owner);

    if (request_take->screening) {
        engine_static.forecast(engine->static_part, request_take, on_screened, call);
        return;
    }
    message_copy(&forecast_request_message, &call->request, request_take);
    engine_llm.forecast(engine->llm, request_take, on_llm_forecast, call);
}

// ---- OBSERVE ----

static void on_static_observed(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;
    struct observed observed = {.added = 0};

    if (!error) {
        observed = *(const struct observed *)reply;
        observed.alarms += call->alarms;
    }
    finish(call, error, &observed);
}

static void on_llm_observed(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    call->alarms = ((const struct observed *)reply)->alarms;
    engine_static.observe(call->engine->static_part, &call->observe, on_static_observed, call);
}

static void both_observe(void *opaque, struct observe *request_take, engine_done *done, void *owner)
{
    struct engine *engine = opaque;
    struct call *call = begin(engine, done, owner);

    message_copy(&observe_message, &call->observe, request_take);
    for (size_t i = 0; i < call->observe.outcomes_count; i++) {
        struct outcome *outcome = &call->observe.outcomes[i];

        if (outcome->candidate) {
            copy_raw(&outcome->candidate->raw, outcome->raw);
        }
    }
    engine_llm.observe(engine->llm, request_take, on_llm_observed, call);
}

// ---- PROPOSE ----

static void both_propose(void *opaque, struct propose_request *request_take, engine_done *done,
                         void *owner)
{
    engine_llm.propose(((struct engine *)opaque)->llm, request_take, done, owner);
}

// ---- RECALL ----

static void both_recall(void *opaque, struct recall_request *request_take, engine_done *done,
                        void *owner)
{
    engine_static.recall(((struct engine *)opaque)->static_part, request_take, done, owner);
}

// ---- RANK ----

static void both_rank(void *opaque, struct rank_request *request_take, engine_done *done,
                      void *owner)
{
    engine_llm.rank(((struct engine *)opaque)->llm, request_take, done, owner);
}

// ---- status ----

// What the language models' engine says of its calls on each problem goes to that problem.
static void merge_models(struct worker_status *both, const struct worker_status *llm)
{
    for (size_t i = 0; i < both->models_count; i++) {
        struct model_info *info = &both->models[i];
        for (size_t k = 0; k < llm->models_count; k++) {
            const struct model_info *theirs = &llm->models[k];
            if (strcmp(info->problem, theirs->problem) == 0 &&
                strcmp(info->device_class, theirs->device_class) == 0) {
                info->alarms += theirs->alarms;
                free(info->model);
                info->model = theirs->model ? xstrdup(theirs->model) : NULL;
            }
        }
    }
}

static void on_static_status(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;
    const struct worker_status *own = reply;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    struct worker_status both;
    message_copy(&worker_status_message, &both, own);
    free(both.engine);
    both.engine = xstrdup(ENGINE_NAME);
    both.endpoints = call->llm_status.endpoints;
    both.endpoints_count = call->llm_status.endpoints_count;
    both.input_tokens = call->llm_status.input_tokens;
    both.output_tokens = call->llm_status.output_tokens;
    both.cost = call->llm_status.cost;
    both.cache_hits = call->llm_status.cache_hits;
    merge_models(&both, &call->llm_status);
    call->llm_status.endpoints = NULL;
    call->llm_status.endpoints_count = 0;
    finish(call, NULL, &both);
    message_clear(&worker_status_message, &both);
}

static void on_llm_status(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    message_copy(&worker_status_message, &call->llm_status, reply);
    engine_static.status(call->engine->static_part, on_static_status, call);
}

static void both_status(void *opaque, engine_done *done, void *owner)
{
    struct engine *engine = opaque;

    engine_llm.status(engine->llm, on_llm_status, begin(engine, done, owner));
}

// ---- opening and closing ----

static int both_open(void **ret, const struct engine_config *config, struct err *err)
{
    if (!config->llm || config->llm->count == 0) {
        return err_set(err, ERR_USAGE,
                       "--engine both needs --endpoint and --model, or a section [endpoint NAME] "
                       "of the configuration"
                       " file: there is no language model to ask");
    }
    struct engine *engine = xcalloc(1, sizeof(*engine));
    int rc = engine_static.open(&engine->static_part, config, err);
    if (rc != 0) {
        free(engine);
        return rc;
    }
    rc = engine_llm.open(&engine->llm, config, err);
    if (rc != 0) {
        engine_static.close(engine->static_part);
        free(engine);
        return rc;
    }
    *ret = engine;
    return 0;
}

// engine_llm.close answers the calls that wait for language models. They go on to engine static,
// which finishes the one that it has begun and answers the others with ERR_STOPPED.
static void both_close(void *opaque)
{
    struct engine *engine = opaque;

    engine->open++; // keeps the engine while its parts are closed
    engine->closing = true;
    engine_llm.close(engine->llm);
    engine_static.close(engine->static_part);
    engine->open--;
    free_if_over(engine);
}

const struct engine_ops engine_both = {
    .name = ENGINE_NAME,
    .help = "asks language models, and learns from outcomes how far to trust them",
    .reads_sources = true,
    .screens = true,
    .open = both_open,
    .forecast = both_forecast,
    .observe = both_observe,
    .propose = both_propose,
    .rank = both_rank,
    .recall = both_recall,
    .status = both_status,
    .close = both_close,
};
