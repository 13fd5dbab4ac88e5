// Design note. A row is one outcome: its features, whether it was correct and its log2 speedup. The
// rows and columns are changed by the learning thread only, which therefore reads them without the
// lock. A fit works on a copy and takes the lock only to put the new model in place. A forecast
// takes the lock to hold the current model and to copy what it needs, and computes without it.
#include "worker/model/group.h"

#include "common/mem.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include "worker/calibration/decisions.h"
#include "worker/calibration/recalibrate.h"
#include "worker/model/feature.h"
#include "worker/model/model.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_MODEL "static" // the name under which raw forecasts are recalibrated
#define TURN_EACH_ROWS 128   // up to here every row is a turn (worker/model/training_schedule.h)
// The prior, which is the forecast as long as there is no model.
#define PRIOR_CORRECT 0.8 // probability of correctness
#define PRIOR_SD 1.5      // standard deviation of the log2 speedup
#define PRIOR_ROWS 2.0    // outcomes that the prior is worth
#define PROPENSITY_MIN 1e-3

struct row {
    struct feature_row feature;
    bool correct;
    double y; // log2 speedup; 0 when not correct
};

struct group {
    char *problem, *device_class;
    struct feature_columns *columns;
    struct row *row;    // the newest outcomes, oldest first
    size_t count, size; // rows, and rows that there is room for
    uint64_t added;     // outcomes ever added or skipped
    struct decisions *decisions;
    struct recalibration *recalibration; // NULL: forecasts are not recalibrated
    pthread_mutex_t lock;                // guards everything that the forecasting thread reads
    struct model *model;                 // NULL: there were too few rows
    size_t model_columns;                // columns of its matrix
    size_t *order;                       // matrix column -> column of the dictionary
    size_t model_correct;                // correct rows that it was given
    uint64_t version;                    // `added` at the last fit; 0: there was none
};

struct group *group_create(const char *problem, const char *device_class)
{
    struct group *group = xcalloc(1, sizeof(*group));
    group->problem = xstrdup(problem);
    group->device_class = xstrdup(device_class);
    group->columns = feature_columns_create();
    group->decisions = decisions_create();
    pthread_mutex_init(&group->lock, NULL);
    return group;
}

void group_free(struct group *group)
{
    if (!group) {
        return;
    }
    for (size_t i = 0; i < group->count; i++) {
        feature_row_clear(&group->row[i].feature);
    }
    free(group->row);
    model_free(group->model);
    free(group->order);
    decisions_free(group->decisions);
    recal_free(group->recalibration);
    feature_columns_free(group->columns);
    free(group->problem);
    free(group->device_class);
    pthread_mutex_destroy(&group->lock);
    free(group);
}

void group_recalibrate(struct group *group)
{
    group->recalibration = recal_create(NULL);
}

static double number_or(double value, double otherwise)
{
    return isfinite(value) ? value : otherwise;
}

// ---- recalibration ----

static struct recal_scope scope_of(const struct group *group)
{
    return (struct recal_scope){
        .model = GROUP_MODEL, .device_class = group->device_class, .problem = group->problem};
}

// Keeps the forecast as the raw one and replaces it by its recalibration.
static void recalibrate(const struct group *group, double target, struct forecast *forecast)
{
    struct recal_scope scope = scope_of(group);
    struct recal_forecast said = {.p_correct = forecast->p_correct,
                                  .p_improves = forecast->p_improves};
    struct raw_forecast *raw = xcalloc(1, sizeof(*raw));

    memcpy(said.bins, forecast->bins, sizeof(said.bins));
    *raw = (struct raw_forecast){.model = xstrdup(GROUP_MODEL),
                                 .p_correct = forecast->p_correct,
                                 .p_improves = forecast->p_improves,
                                 .bins = xmemdup(forecast->bins, sizeof(said.bins)),
                                 .bins_count = BIN_COUNT};
    forecast->raw = raw;
    struct recal_answer answer;
    recal_apply(group->recalibration, &scope, &said, RECAL_FOLD_ALL, &answer);
    memcpy(forecast->bins, answer.bins, sizeof(answer.bins));
    forecast->mean_log2 = bins_mean(answer.bins);
    forecast->p_correct = answer.p_correct;
    forecast->p_improves = answer.p_improves;
    forecast->expected_improvement = answer.p_correct * bins_expected_excess(answer.bins, target);
    forecast->map_version = answer.version;
}

// Teaches the recalibration, when the outcome comes with a raw forecast of this kind of model.
static void add_to_recalibration(struct group *group, const struct outcome *outcome,
                                 const struct recal_outcome *known)
{
    const struct raw_forecast *raw = outcome->raw;
    struct recal_scope scope = scope_of(group);

    if (!group->recalibration || !raw || strcmp(raw->model, GROUP_MODEL) != 0 ||
        raw->bins_count != BIN_COUNT) {
        return;
    }
    struct recal_forecast said = {.p_correct = raw->p_correct, .p_improves = raw->p_improves};
    memcpy(said.bins, raw->bins, sizeof(said.bins));
    (void)recal_add(group->recalibration, &scope, &said, known);
    recal_refit(group->recalibration);
}

// Learns from the forecast that was made for this outcome. Forecasts from before there was a model
// are left out: they were the prior.
static void add_forecast_made(struct group *group, const struct outcome *outcome,
                              const struct row *row)
{
    bool by_model = group->added > GROUP_ROWS_MIN;
    if (!by_model || !(outcome->p_improves >= 0 && outcome->p_improves <= 1)) {
        return;
    }
    double target = number_or(outcome->incumbent_log2, 0) + number_or(outcome->margin_log2, 0);
    double propensity = number_or(outcome->propensity, 1);
    propensity = fmin(fmax(propensity, PROPENSITY_MIN), 1);
    struct recal_outcome known = {.correct = row->correct,
                                  .improved = row->correct && row->y > target,
                                  .log2 = row->y,
                                  .propensity = propensity,
                                  .key = group->added};
    add_to_recalibration(group, outcome, &known);
    decisions_add(group->decisions, outcome->p_improves, known.improved, propensity);
}

void group_add(struct group *group, const struct observe *context, const struct outcome *outcome)
{
    pthread_mutex_lock(&group->lock);
    if (group->count == GROUP_ROWS_MAX) {
        feature_row_clear(&group->row[0].feature);
        memmove(group->row, group->row + 1, --group->count * sizeof(*group->row));
    }
    if (group->count == group->size) {
        group->size = group->size ? 2 * group->size : 64;
        group->row = xrealloc(group->row, group->size, sizeof(*group->row));
    }
    struct feature_facts facts = {
        .candidate = outcome->candidate,
        .baseline = context->baseline_features,
        .baseline_count = context->baseline_features_count,
        .device = context->device_facts,
        .device_count = context->device_facts_count,
    };
    struct row *row = &group->row[group->count++];
    *row = (struct row){.correct = verdict_is_ratio(outcome->verdict)};
    row->feature = feature_row_learn(group->columns, &facts);
    row->y = row->correct ? outcome->log2 : 0;
    group->added++;
    add_forecast_made(group, outcome, row);
    pthread_mutex_unlock(&group->lock);
}

void group_skip(struct group *group, uint64_t count)
{
    group->added += count;
}

// The rows as a matrix, row-major, whose column c is column order[c] of the dictionary.
static float *make_matrix(const struct group *group, const size_t *order, size_t columns)
{
    float *x = xcalloc(group->count * columns + 1, sizeof(*x));
    for (size_t i = 0; i < group->count; i++) {
        for (size_t c = 0; c < columns; c++) {
            x[i * columns + c] = feature_row_value(&group->row[i].feature, order[c]);
        }
    }
    return x;
}

// What a model is trained on, copied out of the group. data points into the rest.
struct training_set {
    struct model_data data;
    float *x;
    bool *param, *correct;
    double *y;
    size_t *order, correct_count;
};

// The columns are in the order of their names. Runs on the learning thread.
static void copy_training_set(const struct group *group, struct training_set *ret)
{
    size_t rows = group->count;
    size_t columns = feature_columns_count(group->columns);
    ret->order = feature_columns_sorted(group->columns);
    ret->x = make_matrix(group, ret->order, columns);
    ret->param = xcalloc(columns + 1, sizeof(*ret->param));
    ret->correct = xcalloc(rows + 1, sizeof(*ret->correct));
    ret->y = xcalloc(rows + 1, sizeof(*ret->y));
    for (size_t c = 0; c < columns; c++) {
        ret->param[c] = feature_columns_is_param(group->columns, ret->order[c]);
    }
    for (size_t i = 0; i < rows; i++) {
        ret->correct[i] = group->row[i].correct;
        ret->correct_count += ret->correct[i];
        ret->y[i] = group->row[i].y;
    }
    ret->data = (struct model_data){
        .x = ret->x,
        .rows = rows,
        .columns = columns,
        .name = ret->order,
        .param = ret->param,
        .correct = ret->correct,
        .y = ret->y,
        .first = group->added - rows,
        .schedule = {.each = TURN_EACH_ROWS, .rows_max = GROUP_ROWS_MAX},
    };
}

static void release_training_set(struct training_set *set)
{
    free(set->order);
    free(set->x);
    free(set->param);
    free(set->correct);
    free(set->y);
}

int group_fit(struct group *group, struct err *err)
{
    struct model *model = NULL, *old = group->model;
    if (group->added == group->version) {
        return 0;
    }
    struct training_set set = {.x = NULL};
    copy_training_set(group, &set);
    int rc = 0;
    if (set.data.rows >= GROUP_ROWS_MIN && set.correct_count >= MODEL_CORRECT_MIN) {
        rc = model_fit(&model, old, &set.data, err); // without the lock
    }
    if (rc == 0) {
        pthread_mutex_lock(&group->lock);
        free(group->order);
        group->model = model;
        group->model_columns = set.data.columns;
        group->model_correct = set.correct_count;
        group->order = set.order;
        group->version = group->added;
        set.order = NULL;
        pthread_mutex_unlock(&group->lock);
        model_free(old);
    }
    release_training_set(&set);
    return rc;
}

bool group_ready(struct group *group, bool more)
{
    pthread_mutex_lock(&group->lock);
    bool ready = group->model || (group->added < GROUP_ROWS_MIN && !more);
    pthread_mutex_unlock(&group->lock);
    return ready;
}

// The prediction while there is no model: the prior, updated by the few outcomes that there are.
static struct prediction prior_prediction(const struct group *group)
{
    double correct = 0, sum = 0, square = 0;
    for (size_t i = 0; i < group->count; i++) {
        if (group->row[i].correct) {
            correct++, sum += group->row[i].y;
        }
    }
    double centre = sum / (correct + PRIOR_ROWS);
    for (size_t i = 0; i < group->count; i++) {
        double d = group->row[i].y - centre;
        square += group->row[i].correct ? d * d : 0;
    }
    return (struct prediction){
        .p_correct = (correct + PRIOR_CORRECT * PRIOR_ROWS) / ((double)group->count + PRIOR_ROWS),
        .centre = centre,
        .scale = sqrt((square + PRIOR_ROWS * PRIOR_SD * PRIOR_SD) / (correct + PRIOR_ROWS)),
    };
}

// What a reply is computed from, taken under the lock; the group may learn on meanwhile.
struct snapshot {
    struct model *model; // held; NULL: the prior is used
    struct prediction prior;
    float *x; // the candidates as rows of the model's matrix
    uint64_t version;
    char *reason; // why the confidence is 0; NULL: it is not
};

// The candidates as rows of the model's matrix.
static float *candidate_matrix(const struct group *group, const struct forecast_request *request)
{
    size_t n = request->candidates_count, columns = group->model_columns;
    float *x = xcalloc(n * columns + 1, sizeof(*x));
    for (size_t i = 0; i < n; i++) {
        struct feature_facts facts = {
            .candidate = &request->candidates[i],
            .baseline = request->baseline_features,
            .baseline_count = request->baseline_features_count,
            .device = request->device_facts,
            .device_count = request->device_facts_count,
        };
        struct feature_row row = feature_row_of(group->columns, &facts);
        for (size_t c = 0; c < columns; c++) {
            x[i * columns + c] = feature_row_value(&row, group->order[c]);
        }
        feature_row_clear(&row);
    }
    return x;
}

// Why forecasts cannot be trusted yet; NULL when they can.
static char *reason_of(const struct group *group)
{
    if (group->count < GROUP_ROWS_MIN) {
        return xasprintf("only %zu outcomes of %s on this device class so far; %d are needed",
                         group->count, group->problem, GROUP_ROWS_MIN);
    }
    if (!group->model) {
        return xasprintf(
            "only %zu correct outcomes of %s on this device class so far; %d are needed",
            group->model_correct, group->problem, MODEL_CORRECT_MIN);
    }
    return NULL;
}

static struct snapshot take_snapshot(struct group *group, const struct forecast_request *request)
{
    pthread_mutex_lock(&group->lock);
    struct snapshot snapshot = {
        .model = model_hold(group->model), .version = group->version, .reason = reason_of(group)};
    if (snapshot.model) {
        snapshot.x = candidate_matrix(group, request);
    } else {
        snapshot.prior = prior_prediction(group);
    }
    pthread_mutex_unlock(&group->lock);
    return snapshot;
}

static void release_snapshot(struct snapshot *snapshot)
{
    model_free(snapshot->model);
    free(snapshot->x);
    free(snapshot->reason);
}

static void fill_forecast(const struct snapshot *snapshot, const struct prediction *prediction,
                          double target, struct forecast *ret)
{
    ret->bins = xcalloc(BIN_COUNT, sizeof(*ret->bins));
    ret->bins_count = BIN_COUNT;
    double below = 0;
    for (size_t b = 0; b < BIN_COUNT; b++) {
        double cdf = b + 1 < BIN_COUNT ? prediction_cdf(prediction, bin_edge[b + 1]) : 1;
        ret->bins[b] = fmax(cdf - below, 0);
        below = fmax(cdf, below);
    }
    ret->p_correct = prediction->p_correct;
    ret->mean_log2 = prediction_mean(prediction);
    ret->p_improves = prediction->p_correct * (1 - prediction_cdf(prediction, target));
    ret->expected_improvement = prediction->p_correct * prediction_excess(prediction, target);
    ret->model_version = snapshot->version;
    ret->trained_rows = snapshot->model ? snapshot->version : 0;
    ret->reason = snapshot->reason ? xstrdup(snapshot->reason) : NULL;
}

static void fill_reply(struct group *group, const struct forecast_request *request,
                       const struct snapshot *snapshot, const struct prediction *prediction,
                       struct forecast_reply *ret)
{
    size_t n = request->candidates_count;
    double target = number_or(request->incumbent_log2, 0) + number_or(request->margin_log2, 0);
    *ret = (struct forecast_reply){.forecasts = xcalloc(n + 1, sizeof(*ret->forecasts)),
                                   .forecasts_count = n};
    for (size_t i = 0; i < n; i++) {
        ret->forecasts[i].id = request->candidates[i].id;
        ret->forecasts[i].seconds = NAN;
        fill_forecast(snapshot, &prediction[i], target, &ret->forecasts[i]);
    }
    pthread_mutex_lock(&group->lock);
    for (size_t i = 0; i < n && !snapshot->reason; i++) {
        struct forecast *forecast = &ret->forecasts[i];
        if (group->recalibration) {
            recalibrate(group, target, forecast);
        }
        forecast->confidence = decisions_confidence(group->decisions, forecast->p_improves);
    }
    pthread_mutex_unlock(&group->lock);
}

int group_forecast(struct group *group, const struct forecast_request *request,
                   struct forecast_reply *ret, struct err *err)
{
    size_t n = request->candidates_count;
    struct prediction *prediction = xcalloc(n + 1, sizeof(*prediction));
    struct snapshot snapshot = take_snapshot(group, request);
    for (size_t i = 0; i < n && !snapshot.model; i++) {
        prediction[i] = snapshot.prior;
    }
    int rc = snapshot.model ? model_predict(snapshot.model, snapshot.x, n, prediction, err) : 0;
    if (rc == 0) {
        fill_reply(group, request, &snapshot, prediction, ret);
    }
    release_snapshot(&snapshot);
    free(prediction);
    return rc;
}

uint64_t group_rows(const struct group *group)
{
    return group->added;
}

uint64_t group_version(const struct group *group)
{
    return group->model ? group->version : 0;
}

void group_info(struct group *group, struct model_info *ret)
{
    pthread_mutex_lock(&group->lock);
    *ret = (struct model_info){
        .problem = xstrdup(group->problem),
        .device_class = xstrdup(group->device_class),
        .rows = group->added,
        .model_version = group_version(group),
        .decision_accuracy = decisions_accuracy(group->decisions),
        .decisions = decisions_count(group->decisions),
    };
    pthread_mutex_unlock(&group->lock);
}
