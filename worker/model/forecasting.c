// Design note. What is copied from the group at the beginning is small: a reference to what the
// last fit has learnt, and the decisions, from which confidences follow. A part needs no lock then.
// With recalibration the end corrects all forecasts at once, so that they are corrected by the same
// map.
#include "worker/model/forecasting.h"

#include "common/mem.h"
#include "proto/bins.h"
#include "worker/model/group_inside.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The prior, which is the forecast as long as there is no model.
#define PRIOR_CORRECT 0.8 // probability of correctness
#define PRIOR_SD 1.5      // standard deviation of the log2 speedup
#define PRIOR_ROWS 2.0    // outcomes that the prior is worth

struct forecasting {
    struct group *group;
    const struct forecast_request *request;
    struct learnt *learnt;       // held; NULL: the prior is used
    struct prediction prior;     // without a model
    uint64_t version;            // of the group's last fit
    char *reason;                // why the confidence is 0; NULL: it is not
    struct decisions *decisions; // copied; NULL when there is a reason
    double target;               // log2 speedup from which on a candidate improves
    struct forecast_reply reply;
};

// The prediction while there is no model: the prior, updated by the few outcomes that there are.
static struct prediction prior_prediction(const struct group *group)
{
    double compiled = 0, correct = 0, sum = 0, square = 0;
    for (size_t i = 0; i < group->count; i++) {
        compiled += group->row[i].compiled;
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
        .p_compiles = 1,
        .p_correct = (correct + PRIOR_CORRECT * PRIOR_ROWS) / (compiled + PRIOR_ROWS),
        .centre = centre,
        .scale = sqrt((square + PRIOR_ROWS * PRIOR_SD * PRIOR_SD) / (correct + PRIOR_ROWS)),
    };
}

// Why forecasts cannot be trusted yet; NULL when they can.
static char *reason_of(const struct group *group, enum group_model which)
{
    if (group->count < GROUP_ROWS_MIN) {
        return xasprintf("only %zu outcomes of %s on this device class so far; %d are needed",
                         group->count, group->problem, GROUP_ROWS_MIN);
    }
    if (!group->learnt[which]) {
        return xasprintf(
            "only %zu correct outcomes of %s on this device class so far; %d are needed",
            group->fitted_correct, group->problem, MODEL_CORRECT_MIN);
    }
    return NULL;
}

struct forecasting *forecasting_begin(struct group *group, const struct forecast_request *request)
{
    struct forecasting *f = xcalloc(1, sizeof(*f));
    size_t n = request->candidates_count;
    enum group_model which = request->screening ? GROUP_SCREENING : GROUP_COMPILED;
    f->group = group;
    f->request = request;
    f->target =
        group_number_or(request->incumbent_log2, 0) + group_number_or(request->margin_log2, 0);
    f->reply = (struct forecast_reply){.forecasts = xcalloc(n + 1, sizeof(*f->reply.forecasts)),
                                       .forecasts_count = n};
    pthread_mutex_lock(&group->lock);
    f->learnt = group->learnt[which];
    f->version = group->version[which];
    f->reason = reason_of(group, which);
    if (f->learnt) {
        __atomic_add_fetch(&f->learnt->references, 1, __ATOMIC_RELAXED);
    } else {
        f->prior = prior_prediction(group);
    }
    f->decisions = f->reason ? NULL : decisions_copy(group->decisions);
    pthread_mutex_unlock(&group->lock);
    return f;
}

// Candidates first … first + count - 1 as rows of the model's matrix.
static float *candidate_matrix(const struct forecasting *f, size_t first, size_t count)
{
    const struct forecast_request *request = f->request;
    size_t columns = f->learnt->order_count;
    float *x = xcalloc(count * columns + 1, sizeof(*x));
    for (size_t i = 0; i < count; i++) {
        struct feature_facts facts = {
            .candidate = &request->candidates[first + i],
            .baseline = request->baseline_features,
            .baseline_count = request->baseline_features_count,
            .device = request->device_facts,
            .device_count = request->device_facts_count,
        };
        struct feature_row row = feature_row_of(f->learnt->columns, &facts);
        for (size_t c = 0; c < columns; c++) {
            x[i * columns + c] = feature_row_value(&row, f->learnt->order[c]);
        }
        feature_row_clear(&row);
    }
    return x;
}

static int predict(const struct forecasting *f, size_t first, size_t count, struct prediction *out,
                   struct err *err)
{
    for (size_t i = 0; i < count && !f->learnt; i++) {
        out[i] = f->prior;
    }
    if (!f->learnt) {
        return 0;
    }
    float *x = candidate_matrix(f, first, count);
    int rc = model_predict(f->learnt->model, x, count, out, err);
    free(x);
    return rc;
}

// Fills in how probable it is that the candidate beats the incumbent by so much. A compiled
// candidate's forecast may be recalibrated, which these probabilities would not be.
static void fill_beyond(const struct forecast_request *request, const struct prediction *prediction,
                        struct forecast *ret)
{
    if (!request->screening || request->beyond_log2_count == 0) {
        return;
    }
    double incumbent = group_number_or(request->incumbent_log2, 0);
    ret->p_beyond = xcalloc(request->beyond_log2_count, sizeof(*ret->p_beyond));
    ret->p_beyond_count = request->beyond_log2_count;
    for (size_t i = 0; i < ret->p_beyond_count; i++) {
        double above = 1 - prediction_cdf(prediction, incumbent + request->beyond_log2[i]);
        ret->p_beyond[i] = prediction->p_correct * fmax(above, 0);
    }
}

static void fill_forecast(const struct forecasting *f, const struct prediction *prediction,
                          struct forecast *ret)
{
    ret->bins = xcalloc(BIN_COUNT, sizeof(*ret->bins));
    ret->bins_count = BIN_COUNT;
    double below = 0;
    for (size_t b = 0; b < BIN_COUNT; b++) {
        double cdf = b + 1 < BIN_COUNT ? prediction_cdf(prediction, bin_edge[b + 1]) : 1;
        ret->bins[b] = fmax(cdf - below, 0);
        below = fmax(cdf, below);
    }
    ret->p_compiles = prediction->p_compiles;
    ret->p_correct = prediction->p_correct;
    ret->mean_log2 = prediction_mean(prediction);
    ret->p_improves = prediction->p_correct * (1 - prediction_cdf(prediction, f->target));
    ret->expected_improvement = prediction->p_correct * prediction_excess(prediction, f->target);
    fill_beyond(f->request, prediction, ret);
    ret->model_version = f->version;
    ret->trained_rows = f->learnt ? f->version : 0;
    ret->reason = f->reason ? xstrdup(f->reason) : NULL;
}

// The confidence follows from P(improves) as it is told, and thus from its recalibration.
static void set_confidence(const struct forecasting *f, struct forecast *forecast)
{
    if (!f->reason) {
        double phase = group_number_or(f->request->incumbent_log2, 0);
        forecast->confidence = decisions_confidence(f->decisions, forecast->p_improves, phase);
    }
}

int forecasting_part(struct forecasting *f, size_t first, size_t count, struct err *err)
{
    struct prediction *prediction = xcalloc(count + 1, sizeof(*prediction));
    int rc = predict(f, first, count, prediction, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct forecast *forecast = &f->reply.forecasts[first + i];
        forecast->id = f->request->candidates[first + i].id;
        forecast->seconds = NAN;
        fill_forecast(f, &prediction[i], forecast);
        set_confidence(f, forecast);
    }
    free(prediction);
    return rc;
}

// Keeps the forecast as the raw one and replaces it by its recalibration.
static void recalibrate(const struct group *group, double target, struct forecast *forecast)
{
    struct recal_scope scope = group_scope(group);
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

static void recalibrate_all(struct forecasting *f)
{
    pthread_mutex_lock(&f->group->recalibrating);
    for (size_t i = 0; i < f->reply.forecasts_count; i++) {
        recalibrate(f->group, f->target, &f->reply.forecasts[i]);
        set_confidence(f, &f->reply.forecasts[i]);
    }
    pthread_mutex_unlock(&f->group->recalibrating);
}

void forecasting_end(struct forecasting *f, struct forecast_reply *ret)
{
    if (ret && !f->reason && !f->request->screening && f->group->recalibration) {
        recalibrate_all(f);
    }
    if (ret) {
        *ret = f->reply;
    } else {
        message_clear(&forecast_reply_message, &f->reply);
    }
    learnt_release(f->learnt);
    decisions_free(f->decisions);
    free(f->reason);
    free(f);
}
