#include "worker/group.h"

#include "common/mem.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include "worker/calibration/calibrate.h"
#include "worker/calibration/recalibrate.h"
#include "worker/model/feature.h"
#include "worker/model/model.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN_EACH_ROWS 128 // up to here every row is a turn of training (worker/schedule.h)
#define PRIOR_CORRECT 0.8  // before there is a model
#define PRIOR_SD 1.5       // of log2 speedup, likewise
#define PRIOR_ROWS 2.0     // what they are worth
#define LOG2_MAX 40.0      // a speedup beyond this is no measurement
#define PROPENSITY_MIN 1e-3

struct row {
    struct feature_row feature;
    bool correct;
    double y; // log2 speedup, when correct
};

#define GROUP_MODEL "static" // whose raw forecasts these are

struct group {
    char *problem, *device_class;
    struct feature_columns *columns;
    struct row *row; // the newest, oldest first
    size_t count, size;
    uint64_t added; // ever
    struct calibration *calibration;
    struct recalibration *recalibration; // NULL: forecasts stay as the model makes them
    pthread_mutex_t lock;                // of all but what only the learning thread uses
    struct model *model;                 // NULL: too few rows
    size_t model_columns;                // columns of its matrix
    size_t *order;                       // matrix column -> column of the dictionary
    size_t model_correct;                // correct rows that it was given
    uint64_t version;                    // `added` at the last fit; 0: none
};

struct group *group_create(const char *problem, const char *device_class)
{
    struct group *group = xcalloc(1, sizeof(*group));
    group->problem = xstrdup(problem);
    group->device_class = xstrdup(device_class);
    group->columns = feature_columns_create();
    group->calibration = calibration_create();
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
    calibration_free(group->calibration);
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

bool group_takes(const struct outcome *outcome)
{
    if (!outcome->candidate || !verdict_known(outcome->verdict)) {
        return false;
    }
    switch ((enum verdict)outcome->verdict) {
    case VERDICT_NONE:
    case VERDICT_COMPILE_ERROR:
    case VERDICT_QUARANTINED:
        return false;
    default:
        return !verdict_is_ratio(outcome->verdict) || fabs(outcome->log2) <= LOG2_MAX;
    }
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

// Replaces what the model says by what its record makes of it, and keeps the former as raw.
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

// Learns what came of a forecast that this group has made.
static void note_forecast(struct group *group, const struct outcome *outcome,
                          const struct recal_outcome *known)
{
    const struct raw_forecast *raw = outcome->raw;
    struct recal_scope scope = scope_of(group);

    if (!group->recalibration || !raw || strcmp(raw->model, GROUP_MODEL) != 0 ||
        raw->bins_count != BIN_COUNT) {
        return;
    }
    struct recal_forecast said = {.p_correct = NAN, .p_improves = NAN};
    said.p_correct = raw->p_correct;
    said.p_improves = raw->p_improves;
    memcpy(said.bins, raw->bins, sizeof(said.bins));
    (void)recal_add(group->recalibration, &scope, &said, known);
    recal_refit(group->recalibration);
}

static void note_call(struct group *group, const struct outcome *outcome, const struct row *row)
{
    bool by_model = group->added > GROUP_ROWS_MIN; // before that it was prior_outlook()
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
    note_forecast(group, outcome, &known);
    calibration_add(group->calibration, outcome->p_improves, known.improved, propensity);
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
    note_call(group, outcome, row);
    pthread_mutex_unlock(&group->lock);
}

void group_skip(struct group *group, uint64_t count)
{
    group->added += count;
}

// Columns in the order of their names.
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

// What the model is to learn from, copied out of the group.
struct lesson {
    struct model_data data;
    float *x;
    bool *param, *correct;
    double *y;
    size_t *order, correct_count;
};

// Only the learning thread changes rows and columns: it reads them without the lock.
static void prepare_lesson(const struct group *group, struct lesson *ret)
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

static void release_lesson(struct lesson *lesson)
{
    free(lesson->order);
    free(lesson->x);
    free(lesson->param);
    free(lesson->correct);
    free(lesson->y);
}

int group_fit(struct group *group, struct err *err)
{
    struct model *model = NULL, *old = group->model;
    if (group->added == group->version) {
        return 0;
    }
    struct lesson lesson = {.x = NULL};
    prepare_lesson(group, &lesson);
    int rc = 0;
    if (lesson.data.rows >= GROUP_ROWS_MIN && lesson.correct_count >= MODEL_CORRECT_MIN) {
        rc = model_fit(&model, old, &lesson.data, err); // forecasts are made meanwhile
    }
    if (rc == 0) {
        pthread_mutex_lock(&group->lock);
        free(group->order);
        group->model = model;
        group->model_columns = lesson.data.columns;
        group->model_correct = lesson.correct_count;
        group->order = lesson.order;
        group->version = group->added;
        lesson.order = NULL;
        pthread_mutex_unlock(&group->lock);
        model_free(old);
    }
    release_lesson(&lesson);
    return rc;
}

bool group_ready(struct group *group, bool more)
{
    pthread_mutex_lock(&group->lock);
    bool ready = group->model || (group->added < GROUP_ROWS_MIN && !more);
    pthread_mutex_unlock(&group->lock);
    return ready;
}

// Before there is a model: what is usual, moved a little by the few outcomes that there are.
static struct outlook prior_outlook(const struct group *group)
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
    return (struct outlook){
        .p_correct = (correct + PRIOR_CORRECT * PRIOR_ROWS) / ((double)group->count + PRIOR_ROWS),
        .centre = centre,
        .scale = sqrt((square + PRIOR_ROWS * PRIOR_SD * PRIOR_SD) / (correct + PRIOR_ROWS)),
    };
}

// What forecasts are made of, as it was at one moment; the group may learn on.
struct basis {
    struct model *model; // held; NULL: prior is all there is
    struct outlook prior;
    float *x; // the candidates, for the model
    uint64_t version;
    char *reason; // NULL: to be trusted
};

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

static struct basis take_basis(struct group *group, const struct forecast_request *request)
{
    pthread_mutex_lock(&group->lock);
    struct basis basis = {
        .model = model_hold(group->model), .version = group->version, .reason = reason_of(group)};
    if (basis.model) {
        basis.x = candidate_matrix(group, request);
    } else {
        basis.prior = prior_outlook(group);
    }
    pthread_mutex_unlock(&group->lock);
    return basis;
}

static void release_basis(struct basis *basis)
{
    model_free(basis->model);
    free(basis->x);
    free(basis->reason);
}

static void fill_forecast(const struct basis *basis, const struct outlook *outlook, double target,
                          struct forecast *ret)
{
    ret->bins = xcalloc(BIN_COUNT, sizeof(*ret->bins));
    ret->bins_count = BIN_COUNT;
    double below = 0;
    for (size_t b = 0; b < BIN_COUNT; b++) {
        double cdf = b + 1 < BIN_COUNT ? outlook_cdf(outlook, bin_edge[b + 1]) : 1;
        ret->bins[b] = fmax(cdf - below, 0);
        below = fmax(cdf, below);
    }
    ret->p_correct = outlook->p_correct;
    ret->mean_log2 = outlook_mean(outlook);
    ret->p_improves = outlook->p_correct * (1 - outlook_cdf(outlook, target));
    ret->expected_improvement = outlook->p_correct * outlook_excess(outlook, target);
    ret->model_version = basis->version;
    ret->trained_rows = basis->model ? basis->version : 0;
    ret->reason = basis->reason ? xstrdup(basis->reason) : NULL;
}

static void fill_reply(struct group *group, const struct forecast_request *request,
                       const struct basis *basis, const struct outlook *outlook,
                       struct forecast_reply *ret)
{
    size_t n = request->candidates_count;
    double target = number_or(request->incumbent_log2, 0) + number_or(request->margin_log2, 0);
    *ret = (struct forecast_reply){.forecasts = xcalloc(n + 1, sizeof(*ret->forecasts)),
                                   .forecasts_count = n};
    for (size_t i = 0; i < n; i++) {
        ret->forecasts[i].id = request->candidates[i].id;
        ret->forecasts[i].seconds = NAN;
        fill_forecast(basis, &outlook[i], target, &ret->forecasts[i]);
    }
    pthread_mutex_lock(&group->lock);
    for (size_t i = 0; i < n && !basis->reason; i++) {
        struct forecast *forecast = &ret->forecasts[i];
        if (group->recalibration) {
            recalibrate(group, target, forecast);
        }
        forecast->confidence = calibration_confidence(group->calibration, forecast->p_improves);
    }
    pthread_mutex_unlock(&group->lock);
}

int group_forecast(struct group *group, const struct forecast_request *request,
                   struct forecast_reply *ret, struct err *err)
{
    size_t n = request->candidates_count;
    struct outlook *outlook = xcalloc(n + 1, sizeof(*outlook));
    struct basis basis = take_basis(group, request);
    for (size_t i = 0; i < n && !basis.model; i++) {
        outlook[i] = basis.prior;
    }
    int rc = 0;
    if (basis.model) {
        rc = model_predict(basis.model, basis.x, n, outlook, err);
    }
    if (rc == 0) {
        fill_reply(group, request, &basis, outlook, ret);
    }
    release_basis(&basis);
    free(outlook);
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
        .decision_accuracy = calibration_accuracy(group->calibration),
        .decisions = calibration_count(group->calibration),
    };
    pthread_mutex_unlock(&group->lock);
}
