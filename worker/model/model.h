// What one group's outcomes say about a candidate: the probability that it is correct and, if it
// is, the distribution of y = log2(baseline time / candidate time). Knows numbers only; where rows
// come from is group.c's business.
#ifndef WORKER_MODEL_MODEL_H
#define WORKER_MODEL_MODEL_H

#include "common/err.h"
#include "worker/schedule.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_CORRECT_MIN 6 // correct rows without which there is no regression

// Training data. All arrays are the caller's and not kept.
struct model_data {
    const float *x; // rows x columns, row-major; NaN is missing
    size_t rows, columns;
    const size_t *name;       // per column: as in worker/model/forest.h
    const bool *param;        // per column: a template parameter
    const bool *correct;      // per row
    const double *y;          // per row; read where correct
    uint64_t first;           // number of row 0 among all there ever were
    struct schedule schedule; // of what is dear; its quarter is not read
};

struct model;

// Fits. Deterministic: a function of the data. old (NULL: none) is a model of earlier rows of the
// same columns or fewer, which saves time: what is not yet to be trained again is shared with it
// (worker/model/forest.h) or extended (worker/model/gauss.h). ERR_INVALID with fewer than MODEL_CORRECT_MIN
// correct rows; ERR_INTERNAL from XGBoost.
MUST_CHECK int model_fit(struct model **ret, const struct model *old, const struct model_data *data,
                         struct err *err);
struct model *model_hold(struct model *model); // one more owner, who calls model_free(); any thread
void model_free(struct model *model);          // any thread

// The forecast for one candidate. Valid as long as the model it came from.
struct outlook {
    const struct model *model; // gives the shape; NULL: a normal distribution
    double p_correct;
    double centre, scale; // of y, given that it is correct
};

// Fills out[rows] from x (rows x columns of the training data).
MUST_CHECK int model_predict(const struct model *model, const float *x, size_t rows,
                             struct outlook *out, struct err *err);

double outlook_cdf(const struct outlook *outlook, double y);    // P(Y <= y | correct)
double outlook_mean(const struct outlook *outlook);             // E(Y | correct)
double outlook_excess(const struct outlook *outlook, double y); // E(max(Y - y, 0) | correct)

#endif
