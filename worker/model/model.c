// Design note. The speed of correct candidates is the mean of two regressions on the correct rows:
// a Gaussian process, which is smooth and good from a dozen rows on, and an ensemble of boosted
// trees, which knows steps and thresholds and is good from a hundred rows on. Each row has a
// prediction by models that have not seen it: the left-out prediction of the process in closed
// form, and the out-of-fold prediction of the ensemble. Two things are fitted to these predictions:
//   - the weight of the trees in the mean (stacking), by least squares, shrunk to TREE_WEIGHT_PRIOR
//     as if by WEIGHT_PRIOR_ROWS rows;
//   - the shape of the residuals z = (y - mean) / sd, where sd is the standard deviation that the
//     process gives for the row (worker/model/prediction.h).
// They use the rows that the process knows, the newest few hundred.
//
// The hyperparameters of the process and the members of the ensemble are expensive and are trained
// at the turns of the training schedule. The process is anchored at its last turn: the scale of y,
// the columns and the weights are found from the rows that were there then. Between turns the
// process is extended by each new row, and the weight of the trees and the shape are fitted anew.
//
// Correctness is a model of its own (worker/model/correctness.h), and so is whether a candidate
// compiles.
#include "worker/model/model.h"

#include "common/mem.h"
#include "common/stats.h"
#include "worker/model/columns.h"
#include "worker/model/correctness.h"
#include "worker/model/ensemble.h"
#include "worker/model/gaussian_process.h"
#include <math.h>
#include <stdlib.h>

#define FOLDS 10
// Quarters of a step by which the parts are trained before the process, which has quarter 0.
#define SPEED_QUARTER 2
#define CORRECTNESS_QUARTER 1
#define COMPILES_QUARTER 3
#define TREE_WEIGHT_PRIOR 0.25
#define WEIGHT_PRIOR_ROWS 20.0
#define Y_SD_MIN 0.05 // log2; smaller variation is noise of the measurement

static const struct boost_config speed_config = {
    .rounds = 60,
    .depth = 4,
    .rate = 0.15,
    .min_child_weight = 1,
    .row_share = 0.8,
    .column_share = 0.8,
    .penalty = 1,
};

struct model {
    size_t columns;  // of the data
    uint64_t end;    // rows that there ever were at the fit
    uint64_t anchor; // rows that there ever were at the last turn of the process
    // These four follow from the rows up to the anchor.
    size_t *chosen, chosen_count; // columns of the process
    double y_mean, y_sd;          // y is standardised before fitting
    size_t *name;                 // of the columns; NULL: their index
    struct gaussian_process *process;
    struct ensemble *trees;         // of the speed; NULL: no column varies
    double tree_weight;             // of the trees in the mean, 0 to 1
    struct residual_shape shape;    // of the residuals
    struct correctness correctness; // of candidates that compile
    bool uncompiled;                // candidates may not compile
    struct correctness compiles;    // if so
};

// Some rows with the chosen columns only.
struct matrix {
    float *x;
    size_t rows, columns;
};

static struct matrix gather(const struct model *model, const float *x, size_t rows, size_t columns,
                            const bool *keep)
{
    struct matrix m = {.columns = model->chosen_count};
    m.x = columns_gather(model->chosen, model->chosen_count, x, rows, columns, keep, &m.rows);
    return m;
}

// Fits the weight of the trees and the shape of the residuals. y and trees are of the rows that the
// process knows; trees are out-of-fold predictions.
static void combine(struct model *model, const double *y, const float *trees)
{
    size_t n = gaussian_process_rows(model->process);
    double *mean = xcalloc(n, sizeof(*mean)), *sd = xcalloc(n, sizeof(*sd));
    double above = 0, below = 0, variance = 0;
    for (size_t i = 0; i < n; i++) {
        gaussian_process_left_out(model->process, i, &mean[i], &sd[i]);
        double gap = trees[i] - mean[i];
        above += gap * (y[i] - mean[i]);
        below += gap * gap;
        variance += gap * gap / (double)n;
    }
    double prior = WEIGHT_PRIOR_ROWS * variance;
    model->tree_weight =
        below > 0 ? (above + TREE_WEIGHT_PRIOR * prior) / (below + prior) : TREE_WEIGHT_PRIOR;
    model->tree_weight = fmin(fmax(model->tree_weight, 0), 1);
    for (size_t i = 0; i < n; i++) {
        double centre = mean[i] + model->tree_weight * (trees[i] - mean[i]);
        mean[i] = (y[i] - centre) / sd[i]; // from here on the residual
    }
    residual_shape_fit(&model->shape, mean, n);
    free(mean);
    free(sd);
}

static struct ensemble_data ensemble_data_of(const struct model_data *data, const bool *take,
                                             const float *label, unsigned quarter)
{
    struct ensemble_data rows = {.x = data->x,
                                 .rows = data->rows,
                                 .columns = data->columns,
                                 .first = data->first,
                                 .name = data->name,
                                 .param = data->param,
                                 .take = take,
                                 .label = label,
                                 .schedule = data->schedule};
    rows.schedule.quarter = quarter;
    return rows;
}

// Fits the ensemble of the speed. Writes its out-of-fold predictions, standardised like y, into
// left_out, one for each correct row.
static int fit_trees(struct model *model, const struct model *old, const struct model_data *data,
                     float *left_out, struct err *err)
{
    float *label = xcalloc(data->rows + 1, sizeof(*label)),
          *all = xcalloc(data->rows + 1, sizeof(*all));
    for (size_t i = 0; i < data->rows; i++) {
        label[i] = (float)data->y[i]; // not standardised, since the scale changes between members
    }
    struct ensemble_data rows = ensemble_data_of(data, data->correct, label, SPEED_QUARTER);
    int rc = ensemble_fit(&model->trees, old ? old->trees : NULL, &speed_config, FOLDS, &rows, err);
    if (rc == 0) {
        rc = ensemble_out_of_fold(model->trees, &rows, all, err);
    }
    size_t n = 0;
    for (size_t i = 0; rc == 0 && i < data->rows; i++) {
        if (data->correct[i]) {
            left_out[n++] = (float)((all[i] - model->y_mean) / model->y_sd);
        }
    }
    free(label);
    free(all);
    return rc;
}

// The correct ones of the rows from `from` to `to` - 1, and their y, standardised. The caller frees
// the matrix and *ret_y.
static struct matrix correct_rows(const struct model *model, const struct model_data *data,
                                  size_t from, size_t to, double **ret_y)
{
    double *y = xcalloc(to - from + 1, sizeof(*y));
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        if (data->correct[i]) {
            y[n++] = (data->y[i] - model->y_mean) / model->y_sd;
        }
    }
    *ret_y = y;
    return gather(model, data->x + from * data->columns, to - from, data->columns,
                  data->correct + from);
}

// How many of the rows were there at the last turn of the process. *ret_from is the first of them
// that will still be there at the next turn. When there are too few correct rows between the two,
// all rows are used.
static size_t find_anchor(const struct model_data *data, size_t *ret_from)
{
    struct training_schedule schedule = data->schedule;
    size_t rows = data->rows, correct = 0;
    schedule.quarter = 0;
    uint64_t end = data->first + rows,
             window = schedule.rows_max - training_schedule_step_max(&schedule);
    uint64_t anchor = training_schedule_rows(&schedule, training_schedule_turn(&schedule, end));
    uint64_t from = anchor > window ? anchor - window : 0;
    *ret_from = from > data->first ? (size_t)(from - data->first) : 0;
    for (size_t i = *ret_from; i < rows && data->first + i < anchor; i++) {
        correct += data->correct[i];
    }
    if (correct < MODEL_CORRECT_MIN) {
        *ret_from = 0;
        return rows;
    }
    return (size_t)(anchor - data->first);
}

// Fits the process to the rows from `from` to `to` - 1, with new columns and a new scale of y.
static void fit_process(struct model *model, const struct model_data *data, size_t from, size_t to)
{
    bool *own = xcalloc(data->columns + 1, sizeof(*own));
    model->chosen = columns_informative(data->x + from * data->columns, to - from, data->columns,
                                        data->param, NULL, &model->chosen_count);
    for (size_t c = 0; c < model->chosen_count; c++) {
        own[c] = data->param[model->chosen[c]];
    }
    model->y_mean = 0;
    model->y_sd = 1;
    double *y;
    struct matrix m = correct_rows(model, data, from, to, &y);
    model->y_mean = stats_mean(y, m.rows);
    model->y_sd = fmax(sqrt(stats_variance(y, m.rows)), Y_SD_MIN);
    for (size_t i = 0; i < m.rows; i++) {
        y[i] = (y[i] - model->y_mean) / model->y_sd;
    }
    model->process = gaussian_process_fit(m.x, m.rows, m.columns, own, y);
    free(own);
    free(y);
    free(m.x);
}

// The indices in the data of the old model's chosen columns; NULL when one is missing.
static size_t *find_chosen(const struct model *old, const struct model_data *data)
{
    size_t *wanted = xcalloc(old->chosen_count + 1, sizeof(*wanted));
    for (size_t i = 0; i < old->chosen_count; i++) {
        wanted[i] = old->name ? old->name[old->chosen[i]] : old->chosen[i];
    }
    size_t *found = columns_find(data->name, data->columns, wanted, old->chosen_count);
    free(wanted);
    return found;
}

// Makes the process, and with it the columns and the scale of y. After a turn it is fitted anew and
// extended by the rows since the turn; otherwise the old one is extended by the rows since the old
// model.
static void make_process(struct model *model, const struct model *old,
                         const struct model_data *data)
{
    size_t from, to = find_anchor(data, &from), known = to; // known: rows that are in the process
    model->anchor = data->first + to;
    model->chosen = old && old->anchor == model->anchor ? find_chosen(old, data) : NULL;
    bool extend = model->chosen;
    if (extend) {
        model->chosen_count = old->chosen_count;
        model->y_mean = old->y_mean;
        model->y_sd = old->y_sd;
        known = (size_t)(old->end - data->first);
    } else {
        fit_process(model, data, from, to);
    }
    if (extend || known < data->rows) {
        struct gaussian_process *anchored = model->process;
        double *y;
        struct matrix m = correct_rows(model, data, known, data->rows, &y);
        model->process = gaussian_process_extend(extend ? old->process : anchored, m.x, m.rows, y);
        gaussian_process_free(anchored);
        free(y);
        free(m.x);
    }
}

static int fit_speed(struct model *model, const struct model *old, const struct model_data *data,
                     struct err *err)
{
    make_process(model, old, data);
    double *y;
    struct matrix m = correct_rows(model, data, 0, data->rows, &y);
    float *left_out = xcalloc(m.rows, sizeof(*left_out));
    size_t older = m.rows - gaussian_process_rows(model->process);
    int rc = 0;
    if (m.columns > 0) {
        rc = fit_trees(model, old, data, left_out, err);
    }
    if (rc == 0) {
        combine(model, y + older, left_out + older);
    }
    free(y);
    free(left_out);
    free(m.x);
    return rc;
}

// Whether candidates are correct is learnt from those that compiled, and whether they compile from
// all. What is asked about compiled candidates needs the first only.
static int fit_correctness(struct model *model, const struct model *old,
                           const struct model_data *data, struct err *err)
{
    bool classify = model->chosen_count > 0;
    struct ensemble_data rows = ensemble_data_of(data, data->compiled, NULL, CORRECTNESS_QUARTER);
    int rc = correctness_fit(&model->correctness, old ? &old->correctness : NULL, &rows,
                             data->correct, classify, err);
    model->uncompiled = data->uncompiled && data->compiled;
    if (rc != 0 || !model->uncompiled) {
        return rc;
    }
    rows = ensemble_data_of(data, NULL, NULL, COMPILES_QUARTER);
    return correctness_fit(&model->compiles, old ? &old->compiles : NULL, &rows, data->compiled,
                           classify, err);
}

int model_fit(struct model **ret, const struct model *old, const struct model_data *data,
              struct err *err)
{
    size_t correct = 0;
    for (size_t i = 0; i < data->rows; i++) {
        correct += data->correct[i];
    }
    if (correct < MODEL_CORRECT_MIN) {
        return err_set(err, ERR_INVALID, "%zu correct rows are too few to learn from", correct);
    }
    struct model *model = xcalloc(1, sizeof(*model));
    model->columns = data->columns;
    if (data->name && data->columns > 0) {
        model->name = xmemdup(data->name, data->columns * sizeof(*data->name));
    }
    model->end = data->first + data->rows;
    int rc = fit_speed(model, old, data, err);
    if (rc != 0) {
        goto out;
    }
    rc = fit_correctness(model, old, data, err);
    if (rc != 0) {
        goto out;
    }
    *ret = model;
    model = NULL;
out:
    model_free(model);
    return rc;
}

void model_free(struct model *model)
{
    if (!model) {
        return;
    }
    ensemble_free(model->trees);
    correctness_release(&model->correctness);
    correctness_release(&model->compiles);
    gaussian_process_free(model->process);
    free(model->name);
    free(model->chosen);
    free(model);
}

int model_predict(const struct model *model, const float *x, size_t rows, struct prediction *out,
                  struct err *err)
{
    struct matrix m = gather(model, x, rows, model->columns, NULL);
    float *trees = xcalloc(rows, sizeof(*trees));
    double *correct = xcalloc(rows, sizeof(*correct)), *compiles = xcalloc(rows, sizeof(*compiles));
    int rc = 0;
    if (model->trees) {
        rc = ensemble_predict(model->trees, x, rows, trees, err);
    }
    if (rc != 0) {
        goto out;
    }
    rc = correctness_predict(&model->correctness, x, rows, correct, err);
    if (rc != 0) {
        goto out;
    }
    if (model->uncompiled) {
        rc = correctness_predict(&model->compiles, x, rows, compiles, err);
        if (rc != 0) {
            goto out;
        }
    }
    for (size_t i = 0; i < rows; i++) {
        double mean = 0, sd = 1;
        gaussian_process_predict(model->process, m.x + i * m.columns, &mean, &sd);
        if (model->trees) {
            mean += model->tree_weight * ((trees[i] - model->y_mean) / model->y_sd - mean);
        }
        out[i] = (struct prediction){
            .shape = &model->shape,
            .p_compiles = model->uncompiled ? compiles[i] : 1,
            .p_correct = correct[i] * (model->uncompiled ? compiles[i] : 1),
            .centre = model->y_mean + model->y_sd * mean,
            .scale = model->y_sd * sd,
        };
    }
out:
    free(trees);
    free(correct);
    free(compiles);
    free(m.x);
    return rc;
}
