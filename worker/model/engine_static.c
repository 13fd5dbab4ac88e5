// Design note. The engine has two work queues, one that learns and one that forecasts.
//
// OBSERVE runs on the learning queue: the outcomes are committed to the store, added to their
// group, the group's model is fitted, and the call is answered. When more OBSERVE calls wait behind
// it, the fit is left to the last of them (or to a FORECAST), so that outcomes that arrive together
// cost one fit.
//
// FORECAST runs on the forecasting queue and uses the latest model, while the next one may be in
// training. It is therefore made with at least the outcomes whose OBSERVE was answered before.
// Where there is no model yet, it waits its turn on the learning queue and fits the model itself.
//
// Groups are read from the store when the engine is opened, and fitted when a forecast needs them.
#include "worker/model/engine_static.h"

#include "common/mem.h"
#include "proto/verdict.h"
#include "worker/model/group.h"
#include "worker/outcomes/outcome.h"
#include "worker/outcomes/outcome_store.h"
#include "worker/work_queue.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define ENGINE_NAME "static"
#define GROUPS_MAX 1024

struct entry {
    char key[OUTCOME_GROUP_KEY_MAX];
    int64_t id; // in the store
    struct group *group;
    UT_hash_handle hh;
};

struct engine {
    struct work_queue *learning, *forecasting;
    unsigned closed;             // queues that are closed
    bool recalibrates;           // groups recalibrate their forecasts
    struct outcome_store *store; // used by the learning queue only
    pthread_mutex_t lock;        // guards the next two; an entry stays until the engine is freed
    struct entry *entry;         // hash table by key
    uint64_t forecasts;          // candidates forecast since the start
    unsigned observes;           // OBSERVE calls that are not done; atomic
};

struct call {
    struct work_item item; // first, so that an item can be cast to its call
    struct engine *engine;
    engine_done *done;
    void *owner;
    bool learns; // runs on the learning queue
    struct err err;
    struct forecast_request forecast_request;
    struct observe observe;
    union {
        struct forecast_reply forecast;
        struct observed observed;
        struct worker_status status;
    } reply;
    const struct message *answer; // descriptor of the reply
};

static struct entry *find_entry(struct engine *engine, const char *problem,
                                const struct digest *digest, const char *device_class)
{
    char identity[OUTCOME_IDENTITY_MAX], key[OUTCOME_GROUP_KEY_MAX];
    outcome_identity(problem, digest, identity);
    outcome_group_key(identity, device_class, key);
    pthread_mutex_lock(&engine->lock);
    struct entry *entry = NULL;
    HASH_FIND_STR(engine->entry, key, entry);
    pthread_mutex_unlock(&engine->lock);
    return entry;
}

static struct entry *add_entry(struct engine *engine, int64_t id, const char *identity,
                               const char *problem, const char *device_class)
{
    struct entry *entry = xcalloc(1, sizeof(*entry));
    outcome_group_key(identity, device_class, entry->key);
    entry->id = id;
    entry->group = group_create(problem, device_class);
    if (engine->recalibrates) {
        group_recalibrate(entry->group);
    }
    pthread_mutex_lock(&engine->lock);
    HASH_ADD_STR(engine->entry, key, entry);
    pthread_mutex_unlock(&engine->lock);
    return entry;
}

// Finds the group of an observation, or makes it.
static int ensure_entry(struct engine *engine, const struct observe *observe, struct entry **ret,
                        struct err *err)
{
    *ret = find_entry(engine, observe->problem, &observe->problem_digest, observe->device_class);
    if (*ret) {
        return 0;
    }
    if (HASH_COUNT(engine->entry) >= GROUPS_MAX) {
        return err_set(err, ERR_LIMIT, "this worker knows %d problems on device classes already",
                       GROUPS_MAX);
    }
    char identity[OUTCOME_IDENTITY_MAX];
    outcome_identity(observe->problem, &observe->problem_digest, identity);
    int64_t id = 0;
    int rc = outcome_store_group(engine->store, identity, observe->problem, observe->device_class,
                                 &id, err);
    if (rc == 0) {
        *ret = add_entry(engine, id, identity, observe->problem, observe->device_class);
    }
    return rc;
}

// Errors of the work functions are in call->err.
static void work_forecast(struct work_item *item)
{
    struct call *call = (struct call *)item;
    const struct forecast_request *request = &call->forecast_request;
    uint64_t begun_ns = uv_hrtime();
    struct entry *entry =
        find_entry(call->engine, request->problem, &request->problem_digest, request->device_class);
    struct group *empty = entry ? NULL : group_create(request->problem, request->device_class);
    struct group *group = entry ? entry->group : empty;
    int rc = call->learns ? group_fit(group, &call->err) : 0;
    if (rc == 0) {
        rc = group_forecast(group, request, &call->reply.forecast, &call->err);
    }
    if (rc == 0) {
        struct forecast_reply *reply = &call->reply.forecast;
        double seconds = (double)(uv_hrtime() - begun_ns) * 1e-9;
        for (size_t i = 0; i < reply->forecasts_count; i++) {
            reply->forecasts[i].engine = xstrdup(ENGINE_NAME);
            reply->forecasts[i].seconds = seconds / (double)reply->forecasts_count;
        }
        pthread_mutex_lock(&call->engine->lock);
        call->engine->forecasts += reply->forecasts_count;
        pthread_mutex_unlock(&call->engine->lock);
    }
    group_free(empty);
}

// ERR_INVALID when one cannot be an outcome. Sets take[i] for the outcomes to be learnt from; those
// that teach nothing (compile-error, quarantined) are left out.
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
        take[i] = outcome_is_usable(outcome);
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
    struct entry *entry = NULL;
    bool *take = xcalloc(observe->outcomes_count + 1, sizeof(*take));
    bool *added = xcalloc(observe->outcomes_count + 1, sizeof(*added));
    int rc = check_outcomes(observe, take, &call->err);
    if (rc != 0) {
        goto out;
    }
    rc = ensure_entry(call->engine, observe, &entry, &call->err);
    if (rc != 0) {
        goto out;
    }
    rc = outcome_store_add(call->engine->store, entry->id, observe, take, added, &call->err);
    if (rc != 0) {
        goto out;
    }
    call->reply.observed = (struct observed){.added = 0};
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        if (added[i]) {
            group_add(entry->group, observe, &observe->outcomes[i]);
            call->reply.observed.added++;
        }
    }
    if (__atomic_load_n(&call->engine->observes, __ATOMIC_RELAXED) <= 1) {
        rc = group_fit(entry->group, &call->err);
    }
    call->reply.observed.rows = group_rows(entry->group);
    call->reply.observed.model_version = group_version(entry->group);
out:
    free(take);
    free(added);
}

static void work_status(struct work_item *item)
{
    struct call *call = (struct call *)item;
    struct engine *engine = call->engine;
    struct worker_status *status = &call->reply.status;

    pthread_mutex_lock(&engine->lock);
    *status =
        (struct worker_status){.engine = xstrdup(ENGINE_NAME), .forecasts = engine->forecasts};
    status->uptime_seconds = NAN;
    status->models = xcalloc(HASH_COUNT(engine->entry) + 1, sizeof(*status->models));
    struct entry *entry, *next;
    HASH_ITER (hh, engine->entry, entry, next) {
        struct model_info *info = &status->models[status->models_count++];
        group_info(entry->group, info);
        status->outcomes += info->rows;
    }
    pthread_mutex_unlock(&engine->lock);
}

static void on_done(struct work_item *item, bool worked)
{
    struct call *call = (struct call *)item;
    if (call->observe.problem) {
        __atomic_sub_fetch(&call->engine->observes, 1, __ATOMIC_RELAXED);
    }
    if (!worked) {
        err_set(&call->err, ERR_STOPPED, "the worker is stopping");
    }
    call->done(call->owner, call->err.code ? &call->err : NULL,
               call->err.code ? NULL : &call->reply);
    message_clear(&forecast_request_message, &call->forecast_request);
    message_clear(&observe_message, &call->observe);
    message_clear(call->answer, &call->reply);
    free(call);
}

static void post(struct engine *engine, struct call *call, void (*work)(struct work_item *),
                 const struct message *reply, engine_done *done, void *owner)
{
    call->item.work = work;
    call->item.done = on_done;
    call->engine = engine;
    call->done = done;
    call->owner = owner;
    call->answer = reply;
    work_queue_post(call->learns ? engine->learning : engine->forecasting, &call->item);
}

static void static_forecast(void *opaque, struct forecast_request *request_take, engine_done *done,
                            void *owner)
{
    struct engine *engine = opaque;
    struct call *call = xcalloc(1, sizeof(*call));
    struct entry *entry = find_entry(engine, request_take->problem, &request_take->problem_digest,
                                     request_take->device_class);
    bool told = __atomic_load_n(&engine->observes, __ATOMIC_RELAXED) > 0;
    call->learns = entry ? !group_ready(entry->group, told) : told;
    call->forecast_request = *request_take;
    memset(request_take, 0, sizeof(*request_take));
    post(engine, call, work_forecast, &forecast_reply_message, done, owner);
}

static void static_observe(void *opaque, struct observe *request_take, engine_done *done,
                           void *owner)
{
    struct engine *engine = opaque;
    struct call *call = xcalloc(1, sizeof(*call));
    call->observe = *request_take;
    call->learns = true;
    memset(request_take, 0, sizeof(*request_take));
    __atomic_add_fetch(&engine->observes, 1, __ATOMIC_RELAXED);
    post(engine, call, work_observe, &observed_message, done, owner);
}

static void static_status(void *engine, engine_done *done, void *owner)
{
    post(engine, xcalloc(1, sizeof(struct call)), work_status, &worker_status_message, done, owner);
}

static void free_engine(struct engine *engine)
{
    struct entry *entry, *next;
    HASH_ITER (hh, engine->entry, entry, next) {
        HASH_DEL(engine->entry, entry);
        group_free(entry->group);
        free(entry);
    }
    outcome_store_close(engine->store);
    pthread_mutex_destroy(&engine->lock);
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

static int load_group(void *owner, int64_t id, const char *identity, const char *problem,
                      const char *device_class, struct err *err)
{
    (void)err;
    add_entry(owner, id, identity, problem, device_class);
    return 0;
}

static void load_outcome(void *owner, const struct observe *observe)
{
    if (outcome_is_usable(&observe->outcomes[0])) {
        group_add(owner, observe, &observe->outcomes[0]);
    }
}

static int load_outcomes(struct outcome_store *store, struct entry *entry, struct err *err)
{
    uint64_t count = 0;
    int rc = outcome_store_count(store, entry->id, &count, err);
    if (rc != 0) {
        return rc;
    }
    if (count > GROUP_ROWS_MAX) {
        group_skip(entry->group, count - GROUP_ROWS_MAX);
    }
    return outcome_store_each_outcome(store, entry->id, GROUP_ROWS_MAX, load_outcome, entry->group,
                                      err);
}

// Reads all groups from the store.
static int load(struct engine *engine, struct err *err)
{
    int rc = outcome_store_each_group(engine->store, load_group, engine, err);
    if (rc != 0) {
        return rc;
    }
    struct entry *entry, *next;
    HASH_ITER (hh, engine->entry, entry, next) {
        rc = load_outcomes(engine->store, entry, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static int static_open(void **ret, const struct engine_config *config, struct err *err)
{
    struct engine *engine = xcalloc(1, sizeof(*engine));
    char *path = xasprintf("%s/worker.db", config->state_dir);
    engine->recalibrates = config->recalibrate_static;
    pthread_mutex_init(&engine->lock, NULL);
    int rc = outcome_store_open(&engine->store, path, err);
    free(path);
    if (rc == 0) {
        rc = load(engine, err);
    }
    if (rc < 0) {
        free_engine(engine);
        return rc;
    }
    engine->learning = work_queue_create(config->loop);
    engine->forecasting = work_queue_create(config->loop);
    *ret = engine;
    return 0;
}

const struct engine_ops engine_static = {
    .name = ENGINE_NAME,
    .help = "boosted trees and a Gaussian process over compiled features and template parameters",
    .open = static_open,
    .forecast = static_forecast,
    .observe = static_observe,
    .status = static_status,
    .close = static_close,
};
