// Speed. Two regressions on the correct rows: a Gaussian process (smooth, strong from a dozen rows
// on) and boosted trees (steps and thresholds, strong from a hundred on), trees as the mean of
// FOLDS models that each leave a fold out (worker/model/forest.h). Each row gets a prediction by models
// that have not seen it: the process's closed form, the fold's trees. From these follow
//   the share of the trees in the centre: least squares, shrunk to TREE_SHARE_PRIOR by
//   SHARE_PRIOR_ROWS rows; the residuals z = (y - centre) / scale, scale being the process's own
//   standard deviation at that row.
// Both are found from the rows that the process knows, the newest few hundred. Its weights and the
// boosters are trained in turn (worker/schedule.h); in between it learns each row as it is, and so
// do the share and the shape.
// The forecast is centre + scale * Z. Z mixes the left-out residuals, each widened by a normal
// kernel, with a heavy-tailed prior shape that is worth SHAPE_PRIOR_ROWS rows: the recalibration
// map of Kuleshov et al. 2018 (R(u) on left-out probabilities), shrunk to the identity. It repairs
// bias, width and skew that the regressions do not know of.
//
// Correctness. The share of correct rows, shrunk to CORRECT_PRIOR. With CLASS_MIN rows of either
// class a logistic booster, mean of CLASS_FOLDS models, put through a logistic curve a + b * logit
// (Platt 1999) that is fitted to left-out predictions with a ridge towards (base rate, no slope),
// so that a booster that has learnt nothing says nothing.
#include "worker/model/model.h"

#include "common/mem.h"
#include "common/stats.h"
#include "worker/model/forest.h"
#include "worker/model/gauss.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOLDS 10
#define CLASS_FOLDS 5
#define CLASS_MIN 3
#define SPEED_QUARTER 2 // of a turn's distance before the process (worker/schedule.h)
#define CLASS_QUARTER 1
#define CORRECT_PRIOR 0.8
#define CORRECT_PRIOR_ROWS 2.0
#define TREE_SHARE_PRIOR 0.25
#define SHARE_PRIOR_ROWS 20.0
#define SHAPE_PRIOR_ROWS 12.0
#define ATOMS_MAX 128
#define Y_SD_MIN 0.05 // log2; what varies less is noise of the measurement
#define PROBABILITY_MIN 0.01

static const struct boost_config speed_config = {
    .rounds = 60,
    .depth = 4,
    .rate = 0.15,
    .min_child_weight = 1,
    .row_share = 0.8,
    .column_share = 0.8,
    .penalty = 1,
};

static const struct boost_config class_config = {
    .logistic = true,
    .rounds = 30,
    .depth = 3,
    .rate = 0.2,
    .min_child_weight = 0.1,
    .row_share = 1,
    .column_share = 0.8,
    .penalty = 1,
};

// One component of the shape, a normal distribution.
struct atom {
    double weight, mean, sd;
};

// The prior shape: close to Student's t with four degrees of freedom and unit scale.
static const struct atom prior_shape[] = {{0.55, 0, 0.8}, {0.35, 0, 1.3}, {0.10, 0, 2.6}};

struct model {
    size_t references;            // atomic
    size_t columns;               // of the data
    uint64_t end;                 // rows that there ever were
    uint64_t anchor;              // the same when the next three were found
    size_t *name;                 // of the columns; NULL: their index
    size_t *chosen, chosen_count; // those that vary and do not repeat another one
    double y_mean, y_sd;          // y is standardised before fitting
    struct gauss *gauss;
    struct forest *tree;
    double tree_share;                                     // of the centre
    struct atom shape[ATOMS_MAX + ARRAY_LEN(prior_shape)]; // of Z; the weights sum to 1
    size_t shape_count;
    double correct_rate;              // shrunk
    struct forest *class;             // NULL: correct_rate is all there is
    double class_offset, class_slope; // logit p = offset + slope * logit of the mean of class
};

// The rows of one kind or all, with the chosen columns only.
struct matrix {
    float *x;
    size_t rows, columns;
};

static double logit(double p)
{
    p = fmin(fmax(p, 1e-4), 1 - 1e-4);
    return log(p / (1 - p));
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

static struct matrix gather(const struct model *model, const float *x, size_t rows, size_t columns,
                            const bool *keep)
{
    struct matrix m = {.columns = model->chosen_count};
    m.x = xcalloc(rows * m.columns + 1, sizeof(*m.x));
    for (size_t i = 0; i < rows; i++) {
        if (keep && !keep[i]) {
            continue;
        }
        for (size_t c = 0; c < m.columns; c++) {
            m.x[m.rows * m.columns + c] = x[i * columns + model->chosen[c]];
        }
        m.rows++;
    }
    return m;
}

// The shape of Z from n left-out residuals z (sorted here).
static void make_shape(struct model *model, double *z, size_t n)
{
    size_t atoms = n < ATOMS_MAX ? n : ATOMS_MAX;
    double share = (double)n / ((double)n + SHAPE_PRIOR_ROWS);
    stats_sort(z, n);
    double spread = (stats_quantile(z, n, 0.75) - stats_quantile(z, n, 0.25)) / 1.35;
    double sd = fmax(0.9 * fmax(spread, 0.3) * pow((double)n, -0.2), 0.1); // Silverman 1986
    for (size_t i = 0; i < atoms; i++) {
        double mean = stats_quantile(z, n, ((double)i + 0.5) / (double)atoms);
        model->shape[i] = (struct atom){share / (double)atoms, mean, sd};
    }
    for (size_t i = 0; i < ARRAY_LEN(prior_shape); i++) {
        model->shape[atoms + i] = prior_shape[i];
        model->shape[atoms + i].weight *= 1 - share;
    }
    model->shape_count = atoms + ARRAY_LEN(prior_shape);
}

// Fits the share of the trees and the shape to left-out predictions of the rows that the process
// knows, which are the last ones; y and tree are of these rows.
static void combine(struct model *model, const double *y, const float *tree)
{
    size_t n = gauss_rows(model->gauss);
    double *mean = xcalloc(n, sizeof(*mean)), *sd = xcalloc(n, sizeof(*sd));
    double above = 0, below = 0, variance = 0;
    for (size_t i = 0; i < n; i++) {
        gauss_left_out(model->gauss, i, &mean[i], &sd[i]);
        double gap = tree[i] - mean[i];
        above += gap * (y[i] - mean[i]);
        below += gap * gap;
        variance += gap * gap / (double)n;
    }
    double prior = SHARE_PRIOR_ROWS * variance;
    model->tree_share =
        below > 0 ? (above + TREE_SHARE_PRIOR * prior) / (below + prior) : TREE_SHARE_PRIOR;
    model->tree_share = fmin(fmax(model->tree_share, 0), 1);
    for (size_t i = 0; i < n; i++) {
        double centre = mean[i] + model->tree_share * (tree[i] - mean[i]);
        mean[i] = (y[i] - centre) / sd[i];
    }
    make_shape(model, mean, n);
    free(mean);
    free(sd);
}

static struct forest_data forest_data_of(const struct model_data *data, const bool *take,
                                         const float *label, unsigned quarter)
{
    struct forest_data rows = {.x = data->x,
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

// Trees of the speed; their left-out predictions in the model's units into left_out, one for each
// correct row.
static int fit_trees(struct model *model, const struct model *old, const struct model_data *data,
                     float *left_out, struct err *err)
{
    float *label = xcalloc(data->rows + 1, sizeof(*label)),
          *all = xcalloc(data->rows + 1, sizeof(*all));
    for (size_t i = 0; i < data->rows; i++) {
        label[i] = (float)data->y[i]; // not standardised: that changes with each row
    }
    struct forest_data rows = forest_data_of(data, data->correct, label, SPEED_QUARTER);
    int rc = forest_fit(&model->tree, old ? old->tree : NULL, &speed_config, FOLDS, &rows, err);
    if (rc == 0) {
        rc = forest_left_out(model->tree, &rows, all, err);
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

// The correct rows with index from .. to - 1; *ret_y, malloc'd, is standardised as the model says.
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

// How many of the rows were there at the last turn: the scale of y, the columns and the weights of
// the process are of these. *ret_from is the first of them that will be there until the next turn.
static size_t find_anchor(const struct model_data *data, size_t *ret_from)
{
    struct schedule schedule = data->schedule;
    size_t rows = data->rows, correct = 0;
    schedule.quarter = 0;
    uint64_t end = data->first + rows, window = schedule.rows_max - schedule_step_max(&schedule);
    uint64_t anchor = schedule_count(&schedule, schedule_turn(&schedule, end));
    uint64_t from = anchor > window ? anchor - window : 0;
    *ret_from = from > data->first ? (size_t)(from - data->first) : 0;
    for (size_t i = *ret_from; i < rows && data->first + i < anchor; i++) {
        correct += data->correct[i];
    }
    if (correct < MODEL_CORRECT_MIN) { // what matters came since
        *ret_from = 0;
        return rows;
    }
    return (size_t)(anchor - data->first);
}

static void fit_process(struct model *model, const struct model_data *data, size_t from, size_t to)
{
    bool *own = xcalloc(data->columns + 1, sizeof(*own));
    model->chosen = forest_columns(data->x + from * data->columns, to - from, data->columns,
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
    model->gauss = gauss_fit(m.x, m.rows, m.columns, own, y);
    free(own);
    free(y);
    free(m.x);
}

// Where the old model's columns are now; NULL when one is missing.
static size_t *find_chosen(const struct model *old, const struct model_data *data)
{
    size_t *wanted = xcalloc(old->chosen_count + 1, sizeof(*wanted));
    for (size_t i = 0; i < old->chosen_count; i++) {
        wanted[i] = old->name ? old->name[old->chosen[i]] : old->chosen[i];
    }
    size_t *place = forest_find(data->name, data->columns, wanted, old->chosen_count);
    free(wanted);
    return place;
}

// The process, and with it the columns and the scale of y: at a turn anew, between turns the old
// one with the rows since.
static void make_process(struct model *model, const struct model *old,
                         const struct model_data *data)
{
    size_t from, to = find_anchor(data, &from), known = to;
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
        struct gauss *anchored = model->gauss;
        double *y;
        struct matrix m = correct_rows(model, data, known, data->rows, &y);
        model->gauss = gauss_extend(extend ? old->gauss : anchored, m.x, m.rows, y);
        gauss_free(anchored);
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
    size_t older = m.rows - gauss_rows(model->gauss);
    int rc = 0;
    if (m.columns) {
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

// Logistic curve through (logit of left_out, correct), by Newton's method with the ridge described
// on top.
static void fit_curve(struct model *model, const float *left_out, const bool *correct, size_t rows)
{
    double base = logit(model->correct_rate), a = base, b = 0;
    for (int step = 0; step < 25; step++) {
        double ga = -(a - base), gb = -b, haa = 1, hab = 0, hbb = 1;
        for (size_t i = 0; i < rows; i++) {
            double u = logit(left_out[i]), p = logistic(a + b * u), w = p * (1 - p);
            double error = (correct[i] ? 1 : 0) - p;
            ga += error;
            gb += error * u;
            haa += w;
            hab += w * u;
            hbb += w * u * u;
        }
        double determinant = haa * hbb - hab * hab;
        a += (hbb * ga - hab * gb) / determinant;
        b += (haa * gb - hab * ga) / determinant;
    }
    model->class_offset = isfinite(a) && isfinite(b) && b > 0 ? a : base;
    model->class_slope = isfinite(a) && isfinite(b) && b > 0 ? b : 0;
}

static int fit_correct(struct model *model, const struct model *old, const struct model_data *data,
                       size_t correct, struct err *err)
{
    size_t wrong = data->rows - correct;
    model->correct_rate = ((double)correct + CORRECT_PRIOR * CORRECT_PRIOR_ROWS) /
                          ((double)data->rows + CORRECT_PRIOR_ROWS);
    if (correct < CLASS_MIN || wrong < CLASS_MIN || model->chosen_count == 0) {
        return 0;
    }
    float *label = xcalloc(data->rows, sizeof(*label)),
          *left_out = xcalloc(data->rows, sizeof(*left_out));
    for (size_t i = 0; i < data->rows; i++) {
        label[i] = data->correct[i] ? 1 : 0;
    }
    struct forest_data rows = forest_data_of(data, NULL, label, CLASS_QUARTER);
    int rc =
        forest_fit(&model->class, old ? old->class : NULL, &class_config, CLASS_FOLDS, &rows, err);
    if (rc == 0) {
        rc = forest_left_out(model->class, &rows, left_out, err);
    }
    if (rc == 0) {
        fit_curve(model, left_out, data->correct, data->rows);
    }
    free(label);
    free(left_out);
    return rc;
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
    model->references = 1;
    model->columns = data->columns;
    if (data->name && data->columns > 0) {
        model->name = xmemdup(data->name, data->columns * sizeof(*data->name));
    }
    model->end = data->first + data->rows;
    int rc = fit_speed(model, old, data, err);
    if (rc == 0) {
        rc = fit_correct(model, old, data, correct, err);
    }
    if (rc < 0) {
        model_free(model);
        return rc;
    }
    *ret = model;
    return 0;
}

struct model *model_hold(struct model *model)
{
    if (model) {
        __atomic_add_fetch(&model->references, 1, __ATOMIC_RELAXED);
    }
    return model;
}

void model_free(struct model *model)
{
    if (!model || __atomic_sub_fetch(&model->references, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    forest_free(model->tree);
    forest_free(model->class);
    gauss_free(model->gauss);
    free(model->name);
    free(model->chosen);
    free(model);
}

int model_predict(const struct model *model, const float *x, size_t rows, struct outlook *out,
                  struct err *err)
{
    struct matrix m = gather(model, x, rows, model->columns, NULL);
    float *tree = xcalloc(rows, sizeof(*tree)), *class = xcalloc(rows, sizeof(*class));
    int rc = 0;
    if (model->tree) {
        rc = forest_predict(model->tree, x, rows, tree, err);
    }
    if (rc == 0 && model->class) {
        rc = forest_predict(model->class, x, rows, class, err);
    }
    for (size_t i = 0; rc == 0 && i < rows; i++) {
        double mean = 0, sd = 1, p = model->correct_rate;
        gauss_predict(model->gauss, m.x + i * m.columns, &mean, &sd);
        if (model->tree) {
            mean += model->tree_share * ((tree[i] - model->y_mean) / model->y_sd - mean);
        }
        if (model->class) {
            p = logistic(model->class_offset + model->class_slope * logit(class[i]));
        }
        out[i] = (struct outlook){
            .model = model,
            .p_correct = fmin(fmax(p, PROBABILITY_MIN), 1 - PROBABILITY_MIN),
            .centre = model->y_mean + model->y_sd * mean,
            .scale = model->y_sd * sd,
        };
    }
    free(tree);
    free(class);
    free(m.x);
    return rc;
}

static const struct atom standard_normal = {1, 0, 1};

static const struct atom *shape_of(const struct outlook *outlook, size_t *ret_count)
{
    *ret_count = outlook->model ? outlook->model->shape_count : 1;
    return outlook->model ? outlook->model->shape : &standard_normal;
}

double outlook_cdf(const struct outlook *outlook, double y)
{
    size_t count;
    const struct atom *atom = shape_of(outlook, &count);
    double z = (y - outlook->centre) / outlook->scale, sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += atom[i].weight * stats_normal_cdf((z - atom[i].mean) / atom[i].sd);
    }
    return fmin(fmax(sum, 0), 1);
}

double outlook_mean(const struct outlook *outlook)
{
    size_t count;
    const struct atom *atom = shape_of(outlook, &count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += atom[i].weight * atom[i].mean;
    }
    return outlook->centre + outlook->scale * sum;
}

double outlook_excess(const struct outlook *outlook, double y)
{
    size_t count;
    const struct atom *atom = shape_of(outlook, &count);
    double z = (y - outlook->centre) / outlook->scale, sum = 0;
    for (size_t i = 0; i < count; i++) { // E(max(X - z, 0)) of a normal X
        double u = (atom[i].mean - z) / atom[i].sd;
        double density = exp(-0.5 * u * u) / sqrt(2 * M_PI);
        sum += atom[i].weight * atom[i].sd * (density + u * stats_normal_cdf(u));
    }
    return fmax(sum, 0) * outlook->scale;
}
