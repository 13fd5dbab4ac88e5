// Design note. The engine has two work queues, one that learns and one that forecasts.
//
// OBSERVE runs on the learning queue: the outcomes are committed to the store, added to their
// group, the group's models that are being asked are fitted, and the call is answered. When more
// OBSERVE calls wait behind it, the fit is left to the last of them (or to a FORECAST), so that
// outcomes that arrive together cost one fit.
//
// FORECAST runs on the forecasting queue, several at a time, and uses the latest model, while the
// next one may be in training. It is therefore made with at least the outcomes whose OBSERVE was
// answered before. The candidates of a large request are divided over the queue's threads in parts
// (worker/model/forecasting.h): the part that begins first takes what the group knows for all of
// them, and the part that ends last makes the reply. Where there is no model yet, the request waits
// its turn on the learning queue, undivided, and fits the model itself.
//
// Groups are read from the store when the engine is opened, and fitted when a forecast needs them.
#include "worker/model/engine_static.h"

#include "common/mem.h"
#include "proto/verdict.h"
#include "worker/model/forecasting.h"
#include "worker/model/group.h"
#include "worker/model/group_table.h"
#include "worker/outcomes/outcome.h"
#include "worker/outcomes/outcome_store.h"
#include "worker/outcomes/recall.h"
#include "worker/work_queue.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENGINE_NAME "static"
#define PART_MIN 16 // candidates of a part: with fewer, going to another thread is not worth it

struct engine {
    struct work_queue *learning, *forecasting;
    unsigned threads;            // width of the forecasting queue
    unsigned closed;             // queues that are closed
    struct outcome_store *store; // used by the learning queue only
    struct group_table *groups;
    uint64_t forecasts; // candidates forecast since the start; atomic
    unsigned observes;  // OBSERVE calls that are not done; atomic
};

struct call {
    struct work_item item; // first, so that an item can be cast to its call; not for forecasts
    struct engine *engine;
    engine_done *done;
    void *owner;
    bool learns; // runs on the learning queue
    struct err err;
    struct forecast_request forecast_request;
    struct observe observe;
    struct recall_request recall;
    union {
        struct forecast_reply forecast;
        struct observed observed;
        struct recall_reply recalled;
        struct worker_status status;
    } reply;
    const struct message *answer; // descriptor of the reply
    struct asked *asked;          // of a forecast, else NULL
};

// Some candidates of a FORECAST.
struct part {
    struct work_item item; // first
    struct call *call;
    size_t first, count;
    double seconds; // that it took
};

// A FORECAST in parts.
struct asked {
    pthread_mutex_t lock;            // guards the next three and the call's error
    bool begun;                      // the group is known, or the error
    struct group *empty;             // owned: stands for a group that does not exist
    struct forecasting *forecasting; // NULL after an error
    size_t left;                     // parts that have not been made; atomic
    size_t undone;                   // parts without their done callback; the loop thread's
    size_t count;
    struct part part[];
};

// Errors of the work functions are in call->err.

// Takes what the group knows, once for all parts of the request.
static void begin_forecast(struct call *call)
{
    struct asked *asked = call->asked;
    const struct forecast_request *request = &call->forecast_request;
    pthread_mutex_lock(&asked->lock);
    if (!asked->begun) {
        asked->begun = true;
        struct group *group = group_table_find(call->engine->groups, request->problem,
                                               &request->problem_digest, request->device_class);
        if (!group) {
            group = asked->empty = group_create(request->problem, request->device_class);
        }
        if (!call->learns || group_fit(group, request->screening, &call->err) == 0) {
            asked->forecasting = forecasting_begin(group, request);
        }
    }
    pthread_mutex_unlock(&asked->lock);
}

// Makes the reply, when the last part has been made.
static void end_forecast(struct call *call)
{
    struct asked *asked = call->asked;
    struct forecast_reply *reply = &call->reply.forecast;
    if (call->err.code) {
        return;
    }
    forecasting_end(asked->forecasting, reply);
    asked->forecasting = NULL;
    for (size_t k = 0; k < asked->count; k++) {
        const struct part *part = &asked->part[k];
        for (size_t i = 0; i < part->count; i++) {
            struct forecast *forecast = &reply->forecasts[part->first + i];
            forecast->engine = xstrdup(ENGINE_NAME);
            forecast->seconds = part->seconds / (double)part->count;
        }
    }
    __atomic_add_fetch(&call->engine->forecasts, reply->forecasts_count, __ATOMIC_RELAXED);
}

static void work_forecast(struct work_item *item)
{
    struct part *part = (struct part *)item;
    struct call *call = part->call;
    struct asked *asked = call->asked;
    uint64_t begun_ns = uv_hrtime();
    begin_forecast(call);
    struct err err = ERR_INIT;
    if (asked->forecasting &&
        forecasting_part(asked->forecasting, part->first, part->count, &err) != 0) {
        pthread_mutex_lock(&asked->lock);
        err_set(&call->err, err.code, "%s", err.text); // the first error stays
        pthread_mutex_unlock(&asked->lock);
    }
    part->seconds = (double)(uv_hrtime() - begun_ns) * 1e-9;
    if (__atomic_sub_fetch(&asked->left, 1, __ATOMIC_ACQ_REL) == 0) {
        end_forecast(call);
    }
}

// ERR_INVALID when one cannot be an outcome. Sets take[i] for the outcomes to be learnt from; those
// that teach nothing (quarantined) are left out.
static int check_outcomes(const struct observe *observe, bool *take, struct err *err)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        const struct outcome *outcome = &observe->outcomes[i];
        if (!outcome->candidate) {
            return err_set(err, ERR_INVALID, "outcome %zu has no candidate", i);
        }
        if (!verdict_known(outcome->verdict)) {
            return err_set(err, ERR_INVALID, "outcome %zu has the unknown verdict %llu", i,
                           (unsigned long long)outcome->verdict);
        }
        take[i] = outcome_is_usable(outcome) || outcome_is_compile_failure(outcome);
        if (verdict_is_ratio(outcome->verdict) && !take[i]) {
            return err_set(err, ERR_INVALID, "outcome %zu is %s with no usable log2", i,
                           verdict_name(outcome->verdict));
        }
    }
    return 0;
}

static void work_observe(struct work_item *item)
{
    struct call *call = (struct call *)item;
    const struct observe *observe = &call->observe;
    struct group *group = NULL;
    int64_t id = 0; // of the group in the store
    bool *take = xcalloc(observe->outcomes_count + 1, sizeof(*take));
    bool *added = xcalloc(observe->outcomes_count + 1, sizeof(*added));
    int rc = check_outcomes(observe, take, &call->err);
    if (rc != 0) {
        goto out;
    }
    rc = group_table_ensure(call->engine->groups, call->engine->store, observe, &group, &id,
                            &call->err);
    if (rc != 0) {
        goto out;
    }
    rc = outcome_store_add(call->engine->store, id, observe, take, added, &call->err);
    if (rc != 0) {
        goto out;
    }
    call->reply.observed = (struct observed){.added = 0};
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        if (added[i]) {
            group_add(group, observe, &observe->outcomes[i]);
            call->reply.observed.added++;
        }
    }
    if (__atomic_load_n(&call->engine->observes, __ATOMIC_RELAXED) <= 1) {
        rc = group_refit(group, &call->err);
    }
    call->reply.observed.rows = group_rows(group);
    call->reply.observed.model_version = group_version(group);
out:
    free(take);
    free(added);
}

static void work_recall(struct work_item *item)
{
    struct call *call = (struct call *)item;
    struct recall_reply reply;
    if (recall_make(call->engine->store, &call->recall, &reply, &call->err) == 0) {
        call->reply.recalled = reply;
    }
}

static void work_status(struct work_item *item)
{
    struct call *call = (struct call *)item;
    struct engine *engine = call->engine;
    struct worker_status *status = &call->reply.status;

    *status = (struct worker_status){
        .engine = xstrdup(ENGINE_NAME),
        .forecasts = __atomic_load_n(&engine->forecasts, __ATOMIC_RELAXED),
        .uptime_seconds = NAN,
    };
    group_table_infos(engine->groups, &status->models, &status->models_count);
    for (size_t i = 0; i < status->models_count; i++) {
        status->outcomes += status->models[i].rows;
    }
}

// Answers the call and frees it.
static void finish(struct call *call, bool worked)
{
    if (!worked) {
        err_set(&call->err, ERR_STOPPED, "the worker is stopping");
    }
    call->done(call->owner, call->err.code ? &call->err : NULL,
               call->err.code ? NULL : &call->reply);
    message_clear(&forecast_request_message, &call->forecast_request);
    message_clear(&observe_message, &call->observe);
    message_clear(&recall_request_message, &call->recall);
    message_clear(call->answer, &call->reply);
    free(call);
}

static void on_done(struct work_item *item, bool worked)
{
    struct call *call = (struct call *)item;
    if (call->observe.problem) {
        __atomic_sub_fetch(&call->engine->observes, 1, __ATOMIC_RELAXED);
    }
    finish(call, worked);
}

// A part has been made, or the queue was closed before its turn. The last one ends the call.
static void on_part_done(struct work_item *item, bool worked)
{
    struct call *call = ((struct part *)item)->call;
    struct asked *asked = call->asked;
    (void)worked; // a part that was not made is still counted as left
    if (--asked->undone > 0) {
        return;
    }
    if (asked->forecasting) {
        forecasting_end(asked->forecasting, NULL);
    }
    group_free(asked->empty);
    pthread_mutex_destroy(&asked->lock);
    bool made = asked->left == 0;
    free(asked);
    finish(call, made);
}

static void begin_call(struct engine *engine, struct call *call, const struct message *reply,
                       engine_done *done, void *owner)
{
    call->engine = engine;
    call->done = done;
    call->owner = owner;
    call->answer = reply;
}

static void post(struct call *call, void (*work)(struct work_item *))
{
    struct engine *engine = call->engine;
    call->item.work = work;
    call->item.done = on_done;
    work_queue_post(call->learns ? engine->learning : engine->forecasting, &call->item);
}

// Divides the candidates of the call's request into parts of equal size, or one more, and posts
// them.
static void post_parts(struct call *call)
{
    struct engine *engine = call->engine;
    size_t candidates = call->forecast_request.candidates_count;
    size_t count = (candidates + PART_MIN - 1) / PART_MIN;
    count = call->learns || count < 1 ? 1 : count > engine->threads ? engine->threads : count;
    struct asked *asked = xcalloc(1, sizeof(*asked) + count * sizeof(asked->part[0]));
    pthread_mutex_init(&asked->lock, NULL);
    asked->left = asked->undone = asked->count = count;
    call->asked = asked;
    for (size_t k = 0, first = 0; k < count; k++) {
        struct part *part = &asked->part[k];
        size_t end = candidates * (k + 1) / count;
        *part = (struct part){.item = {.work = work_forecast, .done = on_part_done},
                              .call = call,
                              .first = first,
                              .count = end - first};
        first = end;
    }
    for (size_t k = 0; k < count; k++) {
        work_queue_post(call->learns ? engine->learning : engine->forecasting,
                        &asked->part[k].item);
    }
}

static void static_forecast(void *opaque, struct forecast_request *request_take, engine_done *done,
                            void *owner)
{
    struct engine *engine = opaque;
    struct call *call = xcalloc(1, sizeof(*call));
    struct group *group =
        group_table_find(engine->groups, request_take->problem, &request_take->problem_digest,
                         request_take->device_class);
    bool told = __atomic_load_n(&engine->observes, __ATOMIC_RELAXED) > 0;
    begin_call(engine, call, &forecast_reply_message, done, owner);
    bool screening = request_take->screening;
    if (group) {
        group_use(group, screening);
    }
    call->learns = group ? !group_ready(group, screening, told) : told;
    call->forecast_request = *request_take;
    memset(request_take, 0, sizeof(*request_take));
    post_parts(call);
}

static void static_observe(void *opaque, struct observe *request_take, engine_done *done,
                           void *owner)
{
    struct engine *engine = opaque;
    struct call *call = xcalloc(1, sizeof(*call));
    call->observe = *request_take;
    call->learns = true;
    memset(request_take, 0, sizeof(*request_take));
    begin_call(engine, call, &observed_message, done, owner);
    __atomic_add_fetch(&engine->observes, 1, __ATOMIC_RELAXED);
    post(call, work_observe);
}

// The store is the learning queue's.
static void static_recall(void *opaque, struct recall_request *request_take, engine_done *done,
                          void *owner)
{
    struct call *call = xcalloc(1, sizeof(*call));
    call->recall = *request_take;
    call->learns = true;
    memset(request_take, 0, sizeof(*request_take));
    begin_call(opaque, call, &recall_reply_message, done, owner);
    post(call, work_recall);
}

static void static_status(void *engine, engine_done *done, void *owner)
{
    struct call *call = xcalloc(1, sizeof(*call));
    begin_call(engine, call, &worker_status_message, done, owner);
    post(call, work_status);
}

static void free_engine(struct engine *engine)
{
    group_table_free(engine->groups);
    outcome_store_close(engine->store);
    free(engine);
}

static void on_queue_closed(void *opaque)
{
    struct engine *engine = opaque;
    if (++engine->closed == 2) {
        free_engine(engine);
    }
}

static void static_close(void *opaque)
{
    struct engine *engine = opaque;
    work_queue_close(engine->forecasting, on_queue_closed, engine);
    work_queue_close(engine->learning, on_queue_closed, engine);
}

static int static_open(void **ret, const struct engine_config *config, struct err *err)
{
    struct engine *engine = xcalloc(1, sizeof(*engine));
    char *path = xasprintf("%s/worker.db", config->state_dir);
    engine->groups = group_table_create(config->recalibrate_static);
    int rc = outcome_store_open(&engine->store, path, err);
    free(path);
    if (rc == 0) {
        rc = group_table_load(engine->groups, engine->store, err);
    }
    if (rc < 0) {
        free_engine(engine);
        return rc;
    }
    engine->threads = config->threads > 0 ? config->threads : 1;
    engine->learning = work_queue_create(config->loop, 1);
    engine->forecasting = work_queue_create(config->loop, engine->threads);
    *ret = engine;
    return 0;
}

const struct engine_ops engine_static = {
    .name = ENGINE_NAME,
    .help = "boosted trees and a Gaussian process over compiled features and template parameters",
    .screens = true,
    .open = static_open,
    .forecast = static_forecast,
    .observe = static_observe,
    .recall = static_recall,
    .status = static_status,
    .close = static_close,
};
