#include "worker/track_record.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include "worker/calibration/calibrate.h"
#include "worker/calibration/recalibrate.h"
#include "worker/group.h"
#include "worker/store.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define IDENTITY_MAX 512
#define CALLS_LEAST 12       // without so many the confidence is 0
#define P_CORRECT_UNSAID 0.8 // where a model does not say it

// A problem on a class of devices.
struct place {
    char identity[IDENTITY_MAX]; // of the problem, '\n', the class
    int64_t id;                  // in the store
    char *problem, *device_class;
    struct calibration *calls;
    uint64_t rows;
    UT_hash_handle hh;
};

struct history {
    struct store *store;
    struct place *places; // hash table
    struct recalibration *recalibration;
    uint64_t outcomes;
};

static void identify(const char *problem, const struct digest *digest, const char *device_class,
                     char ret[static IDENTITY_MAX])
{
    char part[STORE_IDENTITY_MAX];

    store_identity(problem, digest, part);
    (void)snprintf(ret, IDENTITY_MAX, "%s\n%s", part, device_class);
}

static struct place *find_place(const struct history *history, const char *problem,
                                const struct digest *digest, const char *device_class)
{
    char identity[IDENTITY_MAX];

    identify(problem, digest, device_class, identity);
    struct place *place = NULL;
    HASH_FIND_STR(history->places, identity, place);
    return place;
}

static struct place *add_place(struct history *history, int64_t id, const char *part,
                               const char *problem, const char *device_class)
{
    struct place *place = xcalloc(1, sizeof(*place));

    (void)snprintf(place->identity, sizeof(place->identity), "%s\n%s", part, device_class);
    place->id = id;
    place->problem = xstrdup(problem);
    place->device_class = xstrdup(device_class);
    place->calls = calibration_create();
    HASH_ADD_STR(history->places, identity, place);
    return place;
}

static int demand_place(struct history *history, const struct observe *observe, struct place **ret,
                        struct err *err)
{
    *ret = find_place(history, observe->problem, &observe->problem_digest, observe->device_class);
    if (*ret) {
        return 0;
    }
    if (HASH_COUNT(history->places) >= HISTORY_GROUPS_MAX) {
        return err_set(err, ERR_LIMIT, "this worker knows %d problems on device classes already",
                       HISTORY_GROUPS_MAX);
    }
    char part[STORE_IDENTITY_MAX];
    store_identity(observe->problem, &observe->problem_digest, part);
    int64_t id = 0;
    int rc = store_group(history->store, part, observe->problem, observe->device_class, &id, err);
    if (rc == 0) {
        *ret = add_place(history, id, part, observe->problem, observe->device_class);
    }
    return rc;
}

// ---- learning ----

static double best_of(double incumbent_log2)
{
    return isnan(incumbent_log2) ? 0 : incumbent_log2;
}

static bool improved(const struct outcome *outcome)
{
    double margin = isnan(outcome->margin_log2) ? 0 : outcome->margin_log2;

    return verdict_is_ratio(outcome->verdict) &&
           outcome->log2 >= best_of(outcome->incumbent_log2) + margin;
}

static struct recal_forecast raw_of(const struct raw_forecast *raw)
{
    struct recal_forecast ret = {.p_correct = raw->p_correct, .p_improves = raw->p_improves};

    for (size_t i = 0; i < BIN_COUNT && raw->bins_count == BIN_COUNT; i++) {
        ret.bins[i] = raw->bins[i];
    }
    return ret;
}

static void learn(struct history *history, struct place *place, const struct outcome *outcome)
{
    struct recal_outcome known = {
        .correct = verdict_is_ratio(outcome->verdict),
        .improved = improved(outcome),
        .log2 = outcome->log2,
        .propensity = outcome->propensity,
        .key = stats_hash_text(1, outcome->key ? outcome->key : ""),
    };
    struct recal_scope scope = {.device_class = place->device_class, .problem = place->problem};

    place->rows++;
    history->outcomes++;
    if (!outcome->raw) {
        return;
    }
    struct recal_forecast raw = raw_of(outcome->raw);
    scope.model = outcome->raw->model;
    (void)recal_add(history->recalibration, &scope, &raw, &known);
    if (outcome->p_improves >= 0 && outcome->p_improves <= 1) {
        calibration_add(place->calls, outcome->p_improves, known.improved,
                        outcome->propensity > 0 && outcome->propensity <= 1 ? outcome->propensity
                                                                            : 1);
    }
}

static int check(const struct observe *observe, bool *take, struct err *err)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        const struct outcome *outcome = &observe->outcomes[i];

        if (!outcome->candidate || !verdict_known(outcome->verdict)) {
            return err_set(err, ERR_INVALID, "outcome %zu has no candidate or no known verdict", i);
        }
        take[i] = group_takes(outcome);
        if (verdict_is_ratio(outcome->verdict) && !take[i]) {
            return err_set(err, ERR_INVALID, "outcome %zu is %s with no usable log2", i,
                           verdict_name(outcome->verdict));
        }
    }
    return 0;
}

int history_tell(struct history *history, const struct observe *observe, struct observed *ret,
                 struct err *err)
{
    bool *take = xcalloc(observe->outcomes_count + 1, sizeof(*take));
    bool *added = xcalloc(observe->outcomes_count + 1, sizeof(*added));
    int rc = check(observe, take, err);

    *ret = (struct observed){.added = 0};
    struct place *place = NULL;
    if (rc == 0) {
        rc = demand_place(history, observe, &place, err);
    }
    if (rc == 0) {
        rc = store_add(history->store, place->id, observe, take, added, err);
    }
    for (size_t i = 0; i < observe->outcomes_count && rc == 0; i++) {
        if (added[i]) {
            learn(history, place, &observe->outcomes[i]);
            ret->added++;
        }
    }
    if (rc == 0) {
        recal_refit(history->recalibration);
        ret->rows = place->rows;
        ret->model_version = recal_version(history->recalibration);
    }
    free(take);
    free(added);
    return rc;
}

// ---- judging ----

void history_judge(const struct history *history, const struct forecast_request *request,
                   struct forecast *forecast)
{
    double margin = isnan(request->margin_log2) ? 0 : request->margin_log2;
    double target = best_of(request->incumbent_log2) + margin;
    struct recal_scope scope = {.model = forecast->raw->model,
                                .device_class = request->device_class,
                                .problem = request->problem};
    const struct place *place =
        find_place(history, request->problem, &request->problem_digest, request->device_class);

    if (isnan(forecast->raw->p_correct)) {
        forecast->raw->p_correct = P_CORRECT_UNSAID;
    }
    forecast->raw->p_improves =
        forecast->raw->p_correct * (1 - bins_cdf(forecast->raw->bins, target));
    struct recal_forecast raw = raw_of(forecast->raw);
    struct recal_answer answer;
    recal_apply(history->recalibration, &scope, &raw, RECAL_FOLD_ALL, &answer);
    forecast->p_correct = answer.p_correct;
    forecast->bins = xcalloc(BIN_COUNT, sizeof(double));
    forecast->bins_count = BIN_COUNT;
    memcpy(forecast->bins, answer.bins, sizeof(answer.bins));
    forecast->mean_log2 = bins_mean(answer.bins);
    forecast->p_improves = answer.p_improves;
    forecast->expected_improvement =
        answer.p_correct * bins_expected_excess(answer.bins, best_of(request->incumbent_log2));
    forecast->map_version = answer.version;
    forecast->trained_rows = place ? place->rows : 0;
    forecast->confidence = 0;
    if (place && calibration_count(place->calls) >= CALLS_LEAST) {
        forecast->confidence = calibration_confidence(place->calls, forecast->p_improves);
    } else {
        forecast->reason = xasprintf("%zu of this forecaster's calls here are known, %d are needed",
                                     place ? calibration_count(place->calls) : 0, CALLS_LEAST);
    }
}

void history_status(const struct history *history, struct worker_status *status)
{
    struct place *place, *next;

    status->outcomes = history->outcomes;
    status->models = xcalloc(HASH_COUNT(history->places) + 1, sizeof(*status->models));
    HASH_ITER (hh, history->places, place, next) {
        struct model_info *info = &status->models[status->models_count++];

        *info = (struct model_info){
            .problem = xstrdup(place->problem),
            .device_class = xstrdup(place->device_class),
            .rows = place->rows,
            .model_version = recal_version(history->recalibration),
            .decisions = calibration_count(place->calls),
            .decision_accuracy = calibration_accuracy(place->calls),
        };
    }
}

// ---- life ----

static int load_place(void *owner, int64_t id, const char *identity, const char *problem,
                      const char *device_class, struct err *err)
{
    (void)err;
    (void)add_place(owner, id, identity, problem, device_class);
    return 0;
}

struct loading {
    struct history *history;
    struct place *place;
};

static void load_outcome(void *owner, const struct observe *observe)
{
    struct loading *loading = owner;

    if (group_takes(&observe->outcomes[0])) {
        learn(loading->history, loading->place, &observe->outcomes[0]);
    }
}

int history_open(struct history **ret, const char *path, struct err *err)
{
    struct history *history = xcalloc(1, sizeof(*history));
    struct loading loading = {.history = history};
    struct place *next;
    int rc;

    history->recalibration = recal_create(NULL);
    rc = store_open(&history->store, path, err);
    if (rc == 0) {
        rc = store_each_group(history->store, load_place, history, err);
    }
    HASH_ITER (hh, history->places, loading.place, next) {
        if (rc == 0) {
            rc = store_each_outcome(history->store, loading.place->id, HISTORY_ROWS_MAX,
                                    load_outcome, &loading, err);
        }
    }
    if (rc != 0) {
        history_close(history);
        return rc;
    }
    recal_refit(history->recalibration);
    *ret = history;
    return 0;
}

void history_close(struct history *history)
{
    struct place *place, *next;

    if (!history) {
        return;
    }
    HASH_ITER (hh, history->places, place, next) {
        HASH_DEL(history->places, place);
        calibration_free(place->calls);
        free(place->problem);
        free(place->device_class);
        free(place);
    }
    recal_free(history->recalibration);
    store_close(history->store);
    free(history);
}
