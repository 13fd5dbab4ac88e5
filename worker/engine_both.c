// Two engines behind one. A FORECAST goes to engine llm; what models said of each candidate
// (forecast.raw) is put beside its facts (candidate_facts.raw), and so goes to engine static, for
// which it is four more features (worker/model/feature.h). The answer is
//   static's, where it has a model,
//   llm's, recalibrated by its record, where static has none yet and a model answered,
//   static's beginning otherwise: confidence 0, with a reason.
// Without an answer of a language model the four features are missing, and static answers as well as
// it can. The forecast carries the models' raw forecast; it comes back with the outcome, which both
// engines are told and each keeps in a file of its own (llm.db, worker.db): a restart knows the same.
// OBSERVE ends when both know; told again after half of it, each takes what it lacks.
#include "worker/engine_both.h"

#include "common/mem.h"
#include "worker/llm/engine_llm.h"
#include "worker/llm/llm.h"
#include "worker/model/engine_static.h"
#include <stdlib.h>
#include <string.h>

#define ENGINE_NAME "both"

struct engine {
    void *llm, *learner; // engine_llm's, engine_static's
    size_t open;         // calls
    bool closing;
};

struct call {
    struct engine *engine;
    engine_done *done;
    void *owner;
    struct forecast_request request;
    struct observe observe;
    struct forecast_reply said; // by language models
    struct worker_status status;
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
    message_clear(&forecast_reply_message, &call->said);
    message_clear(&worker_status_message, &call->status);
    free(call);
    engine->open--;
    free_if_over(engine);
}

static void copy_raw(struct raw_forecast **to, const struct raw_forecast *from)
{
    if (*to) { // only this engine says what models said
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

// One candidate's answer into *ret (uninitialised before). A model exists where it has been trained.
static void merge(struct forecast *ret, const struct forecast *learnt, const struct forecast *said)
{
    bool static_knows = learnt->trained_rows > 0;

    message_copy(&forecast_message, ret, static_knows || !said->raw ? learnt : said);
    free(ret->engine);
    ret->engine = xstrdup(ENGINE_NAME);
    copy_raw(&ret->raw, said->raw);
    free(ret->rung);
    ret->rung = said->rung ? xstrdup(said->rung) : NULL;
    ret->seconds = said->seconds + learnt->seconds;
    ret->input_tokens = said->input_tokens;
    ret->output_tokens = said->output_tokens;
    ret->cost = said->cost;
    ret->map_version = said->map_version;
    if (!static_knows && !said->raw && said->reason) { // of the two reasons the one to act on
        free(ret->reason);
        ret->reason = xstrdup(said->reason);
    }
}

static void on_learnt(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;
    const struct forecast_reply *learnt = reply;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    struct forecast_reply both;
    message_init(&forecast_reply_message, &both);
    both.forecasts_count = learnt->forecasts_count;
    both.forecasts = xcalloc(both.forecasts_count + 1, sizeof(*both.forecasts));
    for (size_t i = 0; i < both.forecasts_count; i++) {
        merge(&both.forecasts[i], &learnt->forecasts[i], &call->said.forecasts[i]);
    }
    finish(call, NULL, &both);
    message_clear(&forecast_reply_message, &both);
}

static void on_said(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    message_copy(&forecast_reply_message, &call->said, reply);
    for (size_t i = 0; i < call->said.forecasts_count; i++) {
        copy_raw(&call->request.candidates[i].raw, call->said.forecasts[i].raw);
    }
    engine_static.forecast(call->engine->learner, &call->request, on_learnt, call);
}

static void both_forecast(void *opaque, struct forecast_request *request_take, engine_done *done,
                          void *owner)
{
    struct engine *engine = opaque;
    struct call *call = begin(engine, done, owner);

    message_copy(&forecast_request_message, &call->request, request_take);
    engine_llm.forecast(engine->llm, request_take, on_said, call);
}

// ---- OBSERVE ----

static void on_second_told(void *owner, const struct err *error, const void *reply)
{
    finish(owner, error, reply);
}

static void on_first_told(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;

    (void)reply;
    if (error) {
        finish(call, error, NULL);
        return;
    }
    engine_static.observe(call->engine->learner, &call->observe, on_second_told, call);
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
    engine_llm.observe(engine->llm, request_take, on_first_told, call);
}

// ---- PROPOSE ----

static void both_propose(void *opaque, struct propose_request *request_take, engine_done *done,
                         void *owner)
{
    engine_llm.propose(((struct engine *)opaque)->llm, request_take, done, owner);
}

// ---- status ----

static void on_static_status(void *owner, const struct err *error, const void *reply)
{
    struct call *call = owner;
    const struct worker_status *learner = reply;

    if (error) {
        finish(call, error, NULL);
        return;
    }
    struct worker_status both;
    message_copy(&worker_status_message, &both, learner);
    free(both.engine);
    both.engine = xstrdup(ENGINE_NAME);
    both.endpoints = call->status.endpoints;
    both.endpoints_count = call->status.endpoints_count;
    both.input_tokens = call->status.input_tokens;
    both.output_tokens = call->status.output_tokens;
    both.cost = call->status.cost;
    both.cache_hits = call->status.cache_hits;
    call->status.endpoints = NULL;
    call->status.endpoints_count = 0;
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
    message_copy(&worker_status_message, &call->status, reply);
    engine_static.status(call->engine->learner, on_static_status, call);
}

static void both_status(void *opaque, engine_done *done, void *owner)
{
    struct engine *engine = opaque;

    engine_llm.status(engine->llm, on_llm_status, begin(engine, done, owner));
}

// ---- life ----

static int both_open(void **ret, const struct engine_config *config, struct err *err)
{
    if (!config->llm || config->llm->count == 0) {
        return err_set(
            err, ERR_USAGE,
            "--engine both needs --endpoint and --model: there is no language model to ask");
    }
    struct engine *engine;
    engine = xcalloc(1, sizeof(*engine));
    int rc = engine_static.open(&engine->learner, config, err);
    if (rc == 0) {
        rc = engine_llm.open(&engine->llm, config, err);
        if (rc != 0) {
            engine_static.close(engine->learner);
        }
    }
    if (rc != 0) {
        free(engine);
        return rc;
    }
    *ret = engine;
    return 0;
}

// Calls that wait for models are answered inside engine_llm.close and go on to the learner, which
// finishes the one that it has begun and stops the others.
static void both_close(void *opaque)
{
    struct engine *engine = opaque;

    engine->open++; // not freed while its parts are closed
    engine->closing = true;
    engine_llm.close(engine->llm);
    engine_static.close(engine->learner);
    engine->open--;
    free_if_over(engine);
}

const struct engine_ops engine_both = {
    .name = ENGINE_NAME,
    .help = "asks language models, and learns from outcomes how far to trust them",
    .reads_sources = true,
    .open = both_open,
    .forecast = both_forecast,
    .observe = both_observe,
    .propose = both_propose,
    .status = both_status,
    .close = both_close,
};
