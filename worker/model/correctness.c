// Design note. Without a classifier the probability is the share of correct rows, shrunk to
// RATE_PRIOR. With CLASS_MIN rows of either class there is a cross-fitted ensemble of logistic
// boosted trees. Its predictions go through Platt scaling (Platt 1999): a logistic curve
// offset + slope * logit that is fitted to the out-of-fold predictions, with a ridge towards the
// base rate and no slope, so that an ensemble that has learnt nothing changes nothing.
#include "worker/model/correctness.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

#define FOLDS 5
#define CLASS_MIN 3 // rows of either class without which there is no classifier
#define RATE_PRIOR 0.8
#define RATE_PRIOR_ROWS 2.0 // rows that the prior is worth
#define PROBABILITY_MIN 0.01
#define NEWTON_STEPS 25

static const struct boost_config boost_config = {
    .logistic = true,
    .rounds = 30,
    .depth = 3,
    .rate = 0.2,
    .min_child_weight = 0.1,
    .row_share = 1,
    .column_share = 0.8,
    .penalty = 1,
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

static bool takes(const struct ensemble_data *data, size_t row)
{
    return !data->take || data->take[row];
}

// Fits the curve to the out-of-fold predictions by Newton's method.
static void fit_curve(struct correctness *correctness, const float *out_of_fold,
                      const struct ensemble_data *data, const bool *correct)
{
    double base = logit(correctness->rate), a = base, b = 0;
    for (int step = 0; step < NEWTON_STEPS; step++) {
        double ga = -(a - base), gb = -b, haa = 1, hab = 0, hbb = 1;
        for (size_t i = 0; i < data->rows; i++) {
            if (!takes(data, i)) {
                continue;
            }
            double u = logit(out_of_fold[i]), p = logistic(a + b * u), w = p * (1 - p);
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
    bool usable = isfinite(a) && isfinite(b) && b > 0;
    correctness->offset = usable ? a : base;
    correctness->slope = usable ? b : 0;
}

static int fit_classifier(struct correctness *ret, const struct correctness *old,
                          const struct ensemble_data *data, const bool *correct, struct err *err)
{
    struct ensemble_data labelled = *data;
    float *label = xcalloc(data->rows, sizeof(*label));
    float *out_of_fold = xcalloc(data->rows, sizeof(*out_of_fold));
    for (size_t i = 0; i < data->rows; i++) {
        label[i] = correct[i] ? 1 : 0;
    }
    labelled.label = label;
    int rc = ensemble_fit(&ret->ensemble, old ? old->ensemble : NULL, &boost_config, FOLDS,
                          &labelled, err);
    if (rc != 0) {
        goto out;
    }
    rc = ensemble_out_of_fold(ret->ensemble, &labelled, out_of_fold, err);
    if (rc != 0) {
        goto out;
    }
    fit_curve(ret, out_of_fold, data, correct);
out:
    free(label);
    free(out_of_fold);
    return rc;
}

int correctness_fit(struct correctness *ret, const struct correctness *old,
                    const struct ensemble_data *data, const bool *correct, bool classify,
                    struct err *err)
{
    size_t right = 0, rows = 0;
    for (size_t i = 0; i < data->rows; i++) {
        rows += takes(data, i);
        right += takes(data, i) && correct[i];
    }
    *ret = (struct correctness){.rate = ((double)right + RATE_PRIOR * RATE_PRIOR_ROWS) /
                                        ((double)rows + RATE_PRIOR_ROWS)};
    if (right < CLASS_MIN || rows - right < CLASS_MIN || !classify) {
        return 0;
    }
    return fit_classifier(ret, old, data, correct, err);
}

void correctness_release(struct correctness *correctness)
{
    ensemble_free(correctness->ensemble);
    correctness->ensemble = NULL;
}

int correctness_predict(const struct correctness *correctness, const float *x, size_t rows,
                        double *out, struct err *err)
{
    float *class = xcalloc(rows, sizeof(*class));
    int rc = 0;
    if (correctness->ensemble) {
        rc = ensemble_predict(correctness->ensemble, x, rows, class, err);
    }
    for (size_t i = 0; rc == 0 && i < rows; i++) {
        double p = correctness->rate;
        if (correctness->ensemble) {
            p = logistic(correctness->offset + correctness->slope * logit(class[i]));
        }
        out[i] = fmin(fmax(p, PROBABILITY_MIN), 1 - PROBABILITY_MIN);
    }
    free(class);
    return rc;
}
