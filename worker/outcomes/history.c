// Design note. A group (a problem on a device class) is made by its first outcome and kept until
// the history is closed. Every new outcome goes to the store first and then, in memory, to the
// recalibration and to the decisions of the model that forecast it there: what one model was right
// about says nothing of another. An alarm of drift empties the model's decisions in the group. A
// file that is opened is replayed in the order of telling, whatever the group, so that a restarted
// worker knows the same and forgets the same. Only alarms of drift are not repeated, because the
// maps are fitted once, at the end.
#include "worker/outcomes/history.h"

#include "common/mem.h"
#include "common/stats.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include "worker/calibration/decisions.h"
#include "worker/calibration/recalibrate.h"
#include "worker/outcomes/outcome.h"
#include "worker/outcomes/outcome_store.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define DECISIONS_MIN 12 // with fewer known decisions the confidence is 0

// One model's decisions in a group.
struct model_decisions {
    char *model;                 // as raw forecasts name it; key
    struct decisions *decisions; // of the recalibrated forecasts
    UT_hash_handle hh;
};

struct history_group {
    char key[OUTCOME_GROUP_KEY_MAX];
    int64_t id; // in the store
    char *problem, *device_class;
    struct model_decisions *models; // hash table by model
    struct model_decisions *last;   // the model of the last outcome with a forecast; NULL: none yet
    uint64_t rows;                  // outcomes
    uint64_t alarms;                // of drift, since the file was opened
    UT_hash_handle hh;
};

struct history {
    struct outcome_store *store;
    struct history_group *groups; // hash table by key
    struct recalibration *recalibration;
    uint64_t outcomes; // of all groups
};

static struct history_group *find_group(const struct history *history, const char *problem,
                                        const struct digest *digest, const char *device_class)
{
    char identity[OUTCOME_IDENTITY_MAX], key[OUTCOME_GROUP_KEY_MAX];
    outcome_identity(problem, digest, identity);
    outcome_group_key(identity, device_class, key);
    struct history_group *group = NULL;
    HASH_FIND_STR(history->groups, key, group);
    return group;
}

static struct history_group *add_group(struct history *history, int64_t id, const char *identity,
                                       const char *problem, const char *device_class)
{
    struct history_group *group = xcalloc(1, sizeof(*group));
    outcome_group_key(identity, device_class, group->key);
    group->id = id;
    group->problem = xstrdup(problem);
    group->device_class = xstrdup(device_class);
    HASH_ADD_STR(history->groups, key, group);
    return group;
}

// Finds the group of an observation, or makes it.
static int ensure_group(struct history *history, const struct observe *observe,
                        struct history_group **ret, struct err *err)
{
    *ret = find_group(history, observe->problem, &observe->problem_digest, observe->device_class);
    if (*ret) {
        return 0;
    }
    if (HASH_COUNT(history->groups) >= HISTORY_GROUPS_MAX) {
        return err_set(err, ERR_LIMIT, "this worker knows %d problems on device classes already",
                       HISTORY_GROUPS_MAX);
    }
    char identity[OUTCOME_IDENTITY_MAX];
    outcome_identity(observe->problem, &observe->problem_digest, identity);
    int64_t id = 0;
    int rc = outcome_store_group(history->store, identity, observe->problem, observe->device_class,
                                 &id, err);
    if (rc == 0) {
        *ret = add_group(history, id, identity, observe->problem, observe->device_class);
    }
    return rc;
}

// ---- learning ----

static struct model_decisions *find_model(const struct history_group *group, const char *model)
{
    struct model_decisions *model_decisions = NULL;
    HASH_FIND_STR(group->models, model, model_decisions);
    return model_decisions;
}

static struct model_decisions *ensure_model(struct history_group *group, const char *model)
{
    struct model_decisions *model_decisions = find_model(group, model);
    if (!model_decisions) {
        model_decisions = xcalloc(1, sizeof(*model_decisions));
        model_decisions->model = xstrdup(model);
        model_decisions->decisions = decisions_create();
        HASH_ADD_KEYPTR(hh, group->models, model_decisions->model, strlen(model_decisions->model),
                        model_decisions);
    }
    return model_decisions;
}

// The log2 speedup that counts as the best so far: the baseline's, 0, while there is no incumbent.
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

// The raw forecast as numbers. Without BIN_COUNT bins they are all 0: not forecast.
static struct recal_forecast raw_of(const struct raw_forecast *raw)
{
    struct recal_forecast ret = {.p_correct = raw->p_correct, .p_improves = raw->p_improves};

    for (size_t i = 0; i < BIN_COUNT && raw->bins_count == BIN_COUNT; i++) {
        ret.bins[i] = raw->bins[i];
    }
    return ret;
}

// Counts the outcome. Also teaches the recalibration when the outcome has a raw forecast, and the
// model's decisions when it has the probability of improvement that was stated. Returns whether the
// alarm of drift went off.
static bool learn(struct history *history, struct history_group *group,
                  const struct outcome *outcome)
{
    struct recal_outcome known = {
        .correct = verdict_is_ratio(outcome->verdict),
        .improved = improved(outcome),
        .log2 = outcome->log2,
        .propensity = outcome->propensity,
        .key = stats_hash_text(1, outcome->key ? outcome->key : ""),
    };
    struct recal_scope scope = {.device_class = group->device_class, .problem = group->problem};

    group->rows++;
    history->outcomes++;
    if (!outcome->raw) {
        return false;
    }
    struct recal_forecast raw = raw_of(outcome->raw);
    scope.model = outcome->raw->model;
    bool alarm = recal_add(history->recalibration, &scope, &raw, &known);
    struct model_decisions *model_decisions = group->last = ensure_model(group, scope.model);
    if (alarm) {
        group->alarms++;
        decisions_free(model_decisions->decisions);
        model_decisions->decisions = decisions_create();
    }
    if (outcome->p_improves >= 0 && outcome->p_improves <= 1) {
        bool usable = outcome->propensity > 0 && outcome->propensity <= 1;
        decisions_add(model_decisions->decisions, outcome->p_improves, known.improved,
                      usable ? outcome->propensity : 1, best_of(outcome->incumbent_log2));
    }
    return alarm;
}

// Sets take[i] for the outcomes to be learnt from. ERR_INVALID when one cannot be an outcome.
static int check(const struct observe *observe, bool *take, struct err *err)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        const struct outcome *outcome = &observe->outcomes[i];

        if (!outcome->candidate || !verdict_known(outcome->verdict)) {
            return err_set(err, ERR_INVALID, "outcome %zu has no candidate or no known verdict", i);
        }
        take[i] = outcome_is_usable(outcome);
        if (verdict_is_ratio(outcome->verdict) && !take[i]) {
            return err_set(err, ERR_INVALID, "outcome %zu is %s with no usable log2", i,
                           verdict_name(outcome->verdict));
        }
    }
    return 0;
}

int history_add(struct history *history, const struct observe *observe, struct observed *ret,
                struct err *err)
{
    bool *take = xcalloc(observe->outcomes_count + 1, sizeof(*take));
    bool *added = xcalloc(observe->outcomes_count + 1, sizeof(*added));
    struct history_group *group = NULL;

    *ret = (struct observed){.added = 0};
    int rc = check(observe, take, err);
    if (rc != 0) {
        goto out;
    }
    rc = ensure_group(history, observe, &group, err);
    if (rc != 0) {
        goto out;
    }
    rc = outcome_store_add(history->store, group->id, observe, take, added, err);
    if (rc != 0) {
        goto out;
    }
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        if (added[i]) {
            ret->alarms += learn(history, group, &observe->outcomes[i]);
            ret->added++;
        }
    }
    recal_refit(history->recalibration);
    ret->rows = group->rows;
    ret->model_version = recal_version(history->recalibration);
out:
    free(take);
    free(added);
    return rc;
}

// ---- recalibrating ----

void history_recalibrate(const struct history *history, const struct forecast_request *request,
                         struct forecast *forecast)
{
    double margin = isnan(request->margin_log2) ? 0 : request->margin_log2;
    double target = best_of(request->incumbent_log2) + margin;
    struct recal_scope scope = {.model = forecast->raw->model,
                                .device_class = request->device_class,
                                .problem = request->problem};
    const struct history_group *group =
        find_group(history, request->problem, &request->problem_digest, request->device_class);

    if (isnan(forecast->raw->p_correct)) {
        forecast->raw->p_correct = HISTORY_P_CORRECT_DEFAULT;
    }
    if (isnan(forecast->raw->p_improves)) {
        forecast->raw->p_improves =
            forecast->raw->p_correct * (1 - bins_cdf(forecast->raw->bins, target));
    }
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
    forecast->trained_rows = group ? group->rows : 0;
    const struct model_decisions *model_decisions = group ? find_model(group, scope.model) : NULL;
    size_t known = model_decisions ? decisions_count(model_decisions->decisions) : 0;
    forecast->confidence = 0;
    if (known >= DECISIONS_MIN) {
        forecast->confidence = decisions_confidence(
            model_decisions->decisions, forecast->p_improves, best_of(request->incumbent_log2));
    } else {
        forecast->reason = xasprintf("%zu of this forecaster's calls here are known, %d are needed",
                                     known, DECISIONS_MIN);
    }
}

void history_status(const struct history *history, struct worker_status *status)
{
    struct history_group *group, *next;

    status->outcomes = history->outcomes;
    status->models = xcalloc(HASH_COUNT(history->groups) + 1, sizeof(*status->models));
    HASH_ITER (hh, history->groups, group, next) {
        struct model_info *info = &status->models[status->models_count++];

        *info = (struct model_info){
            .problem = xstrdup(group->problem),
            .device_class = xstrdup(group->device_class),
            .rows = group->rows,
            .model_version = recal_version(history->recalibration),
            .decision_accuracy = NAN,
            .alarms = group->alarms,
        };
        if (group->last) {
            info->model = xasprintf("%.255s", group->last->model);
            info->decisions = decisions_count(group->last->decisions);
            info->decision_accuracy = decisions_accuracy(group->last->decisions);
        }
    }
}

// ---- opening and closing ----

static int load_group(void *owner, int64_t id, const char *identity, const char *problem,
                      const char *device_class, struct err *err)
{
    (void)err;
    (void)add_group(owner, id, identity, problem, device_class);
    return 0;
}

static void load_outcome(void *owner, const struct observe *observe)
{
    struct history *history = owner;
    struct history_group *group =
        find_group(history, observe->problem, &observe->problem_digest, observe->device_class);

    if (group && outcome_is_usable(&observe->outcomes[0])) {
        (void)learn(history, group, &observe->outcomes[0]);
    }
}

// Opens the file and replays its outcomes.
static int load(struct history *history, const char *path, struct err *err)
{
    int rc = outcome_store_open(&history->store, path, err);
    if (rc != 0) {
        return rc;
    }
    rc = outcome_store_each_group(history->store, load_group, history, err);
    if (rc != 0) {
        return rc;
    }
    return outcome_store_each(history->store, HISTORY_ROWS_MAX, load_outcome, history, err);
}

int history_open(struct history **ret, const char *path, struct err *err)
{
    struct history *history = xcalloc(1, sizeof(*history));
    history->recalibration = recal_create(NULL);
    int rc = load(history, path, err);
    if (rc != 0) {
        history_close(history);
        return rc;
    }
    recal_refit(history->recalibration);
    *ret = history;
    return 0;
}

static void free_models(struct history_group *group)
{
    struct model_decisions *model_decisions, *next;
    HASH_ITER (hh, group->models, model_decisions, next) {
        HASH_DEL(group->models, model_decisions);
        decisions_free(model_decisions->decisions);
        free(model_decisions->model);
        free(model_decisions);
    }
}

void history_close(struct history *history)
{
    struct history_group *group, *next;

    if (!history) {
        return;
    }
    HASH_ITER (hh, history->groups, group, next) {
        HASH_DEL(history->groups, group);
        free_models(group);
        free(group->problem);
        free(group->device_class);
        free(group);
    }
    recal_free(history->recalibration);
    outcome_store_close(history->store);
    free(history);
}
