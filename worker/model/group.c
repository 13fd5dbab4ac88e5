// Design note. A row is one outcome: its features, whether it compiled and was correct, and its
// log2 speedup. The features of a row that did not compile are those known before. The rows and
// columns are changed by the learning thread only, which therefore reads them without the lock.
// What a fit has learnt is immutable from then on (struct learnt): the fit takes the lock only to
// put it in the place of what was learnt before. How forecasts are made from it is
// worker/model/forecasting.c's.
#include "worker/model/group.h"

#include "common/mem.h"
#include "proto/verdict.h"
#include "worker/model/forecasting.h"
#include "worker/model/group_inside.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TURN_EACH_ROWS 128 // up to here every row is a turn (worker/model/training_schedule.h)
#define PROPENSITY_MIN 1e-3

struct group *group_create(const char *problem, const char *device_class)
{
    struct group *group = xcalloc(1, sizeof(*group));
    group->problem = xstrdup(problem);
    group->device_class = xstrdup(device_class);
    group->columns = feature_columns_create();
    group->decisions = decisions_create();
    pthread_mutex_init(&group->lock, NULL);
    pthread_mutex_init(&group->recalibrating, NULL);
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
    for (size_t i = 0; i < GROUP_MODELS; i++) {
        learnt_release(group->learnt[i]);
    }
    decisions_free(group->decisions);
    recal_free(group->recalibration);
    feature_columns_free(group->columns);
    free(group->problem);
    free(group->device_class);
    pthread_mutex_destroy(&group->lock);
    pthread_mutex_destroy(&group->recalibrating);
    free(group);
}

void group_recalibrate(struct group *group)
{
    group->recalibration = recal_create(NULL);
}

void learnt_release(struct learnt *learnt)
{
    if (!learnt || __atomic_sub_fetch(&learnt->references, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    model_free(learnt->model);
    feature_columns_free(learnt->columns);
    free(learnt->order);
    free(learnt);
}

double group_number_or(double value, double otherwise)
{
    return isfinite(value) ? value : otherwise;
}

struct recal_scope group_scope(const struct group *group)
{
    return (struct recal_scope){
        .model = GROUP_MODEL, .device_class = group->device_class, .problem = group->problem};
}

// Teaches the recalibration, when the outcome comes with a raw forecast of this kind of model.
static void add_to_recalibration(struct group *group, const struct outcome *outcome,
                                 const struct recal_outcome *known)
{
    const struct raw_forecast *raw = outcome->raw;
    struct recal_scope scope = group_scope(group);

    if (!group->recalibration || !raw || strcmp(raw->model, GROUP_MODEL) != 0 ||
        raw->bins_count != BIN_COUNT) {
        return;
    }
    struct recal_forecast said = {.p_correct = raw->p_correct, .p_improves = raw->p_improves};
    memcpy(said.bins, raw->bins, sizeof(said.bins));
    pthread_mutex_lock(&group->recalibrating);
    (void)recal_add(group->recalibration, &scope, &said, known);
    recal_refit(group->recalibration);
    pthread_mutex_unlock(&group->recalibrating);
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
    double target =
        group_number_or(outcome->incumbent_log2, 0) + group_number_or(outcome->margin_log2, 0);
    double propensity = group_number_or(outcome->propensity, 1);
    propensity = fmin(fmax(propensity, PROPENSITY_MIN), 1);
    struct recal_outcome known = {.correct = row->correct,
                                  .improved = row->correct && row->y > target,
                                  .log2 = row->y,
                                  .propensity = propensity,
                                  .key = group->added};
    add_to_recalibration(group, outcome, &known);
    pthread_mutex_lock(&group->lock);
    decisions_add(group->decisions, outcome->p_improves, known.improved, propensity,
                  group_number_or(outcome->incumbent_log2, 0));
    pthread_mutex_unlock(&group->lock);
}

// Keeps the row as the newest one.
static void append_row(struct group *group, const struct row *row)
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
    group->row[group->count++] = *row;
    group->added++;
    pthread_mutex_unlock(&group->lock);
}

void group_add(struct group *group, const struct observe *context, const struct outcome *outcome)
{
    struct feature_facts facts = {
        .candidate = outcome->candidate,
        .baseline = context->baseline_features,
        .baseline_count = context->baseline_features_count,
        .device = context->device_facts,
        .device_count = context->device_facts_count,
    };
    struct row row = {.compiled = outcome->verdict != VERDICT_COMPILE_ERROR,
                      .correct = verdict_is_ratio(outcome->verdict)};
    row.feature = feature_row_learn(group->columns, &facts);
    row.y = row.correct ? outcome->log2 : 0;
    append_row(group, &row);
    add_forecast_made(group, outcome, &row);
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
    bool *param, *compiled, *correct;
    double *y;
    size_t *order, correct_count;
};

// Leaves out the columns that are only known of compiled candidates. Returns how many stay.
static size_t keep_uncompiled(const struct group *group, size_t *order, size_t count)
{
    size_t kept = 0;
    for (size_t c = 0; c < count; c++) {
        if (feature_columns_is_uncompiled(group->columns, order[c])) {
            order[kept++] = order[c];
        }
    }
    return kept;
}

// The columns are in the order of their names. Runs on the learning thread.
static void copy_training_set(const struct group *group, enum group_model which,
                              struct training_set *ret)
{
    size_t rows = group->count;
    size_t columns = feature_columns_count(group->columns);
    ret->order = feature_columns_sorted(group->columns);
    if (which == GROUP_SCREENING) {
        columns = keep_uncompiled(group, ret->order, columns);
    }
    ret->x = make_matrix(group, ret->order, columns);
    ret->param = xcalloc(columns + 1, sizeof(*ret->param));
    ret->compiled = xcalloc(rows + 1, sizeof(*ret->compiled));
    ret->correct = xcalloc(rows + 1, sizeof(*ret->correct));
    ret->y = xcalloc(rows + 1, sizeof(*ret->y));
    for (size_t c = 0; c < columns; c++) {
        ret->param[c] = feature_columns_is_param(group->columns, ret->order[c]);
    }
    for (size_t i = 0; i < rows; i++) {
        ret->compiled[i] = group->row[i].compiled;
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
        .compiled = ret->compiled,
        .correct = ret->correct,
        .y = ret->y,
        .uncompiled = which == GROUP_SCREENING,
        .first = group->added - rows,
        .schedule = {.each = TURN_EACH_ROWS, .rows_max = GROUP_ROWS_MAX},
    };
}

static void release_training_set(struct training_set *set)
{
    free(set->order);
    free(set->x);
    free(set->param);
    free(set->compiled);
    free(set->correct);
    free(set->y);
}

// Puts what was learnt in the place of what was learnt before. The columns' order goes over from
// the training set.
static void put_learnt(struct group *group, enum group_model which, struct model *model,
                       struct training_set *set)
{
    struct learnt *before = group->learnt[which], *learnt = NULL;
    if (model) {
        learnt = xcalloc(1, sizeof(*learnt));
        *learnt = (struct learnt){.references = 1,
                                  .model = model,
                                  .columns = feature_columns_copy(group->columns),
                                  .order = set->order,
                                  .order_count = set->data.columns,
                                  .version = group->added};
        set->order = NULL;
    }
    pthread_mutex_lock(&group->lock);
    group->learnt[which] = learnt;
    group->fitted_correct = set->correct_count;
    group->version[which] = group->added;
    group->stale[which] = false;
    pthread_mutex_unlock(&group->lock);
    learnt_release(before);
}

static enum group_model model_of(bool screening)
{
    return screening ? GROUP_SCREENING : GROUP_COMPILED;
}

static int fit(struct group *group, enum group_model which, struct err *err)
{
    struct learnt *learnt = group->learnt[which];
    struct model *model = NULL;
    if (group->added == group->version[which]) {
        return 0;
    }
    struct training_set set = {.x = NULL};
    copy_training_set(group, which, &set);
    int rc = 0;
    if (set.data.rows >= GROUP_ROWS_MIN && set.correct_count >= MODEL_CORRECT_MIN) {
        rc = model_fit(&model, learnt ? learnt->model : NULL, &set.data, err); // without the lock
    }
    if (rc == 0) {
        put_learnt(group, which, model, &set);
    }
    release_training_set(&set);
    return rc;
}

void group_use(struct group *group, bool screening)
{
    pthread_mutex_lock(&group->lock);
    group->used[model_of(screening)] = group->added + 1;
    pthread_mutex_unlock(&group->lock);
}

int group_fit(struct group *group, bool screening, struct err *err)
{
    return fit(group, model_of(screening), err);
}

int group_refit(struct group *group, struct err *err)
{
    int rc = 0;
    for (size_t which = 0; which < GROUP_MODELS && rc == 0; which++) {
        pthread_mutex_lock(&group->lock);
        bool used =
            group->used[which] > 0 && group->added + 1 - group->used[which] <= GROUP_USED_ROWS;
        group->stale[which] = !used && group->version[which] != group->added;
        pthread_mutex_unlock(&group->lock);
        rc = used ? fit(group, (enum group_model)which, err) : 0;
    }
    return rc;
}

bool group_ready(struct group *group, bool screening, bool more)
{
    enum group_model which = model_of(screening);
    pthread_mutex_lock(&group->lock);
    bool ready =
        (group->learnt[which] && !group->stale[which]) || (group->added < GROUP_ROWS_MIN && !more);
    pthread_mutex_unlock(&group->lock);
    return ready;
}

int group_forecast(struct group *group, const struct forecast_request *request,
                   struct forecast_reply *ret, struct err *err)
{
    struct forecasting *forecasting = forecasting_begin(group, request);
    int rc = forecasting_part(forecasting, 0, request->candidates_count, err);
    forecasting_end(forecasting, rc == 0 ? ret : NULL);
    return rc;
}

uint64_t group_rows(const struct group *group)
{
    return group->added;
}

uint64_t group_version(const struct group *group)
{
    uint64_t newest = 0;
    for (size_t which = 0; which < GROUP_MODELS; which++) {
        if (group->learnt[which] && group->version[which] > newest) {
            newest = group->version[which];
        }
    }
    return newest;
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
