// The model of one group (worker/model/group.h): learns from rows of features and predicts, for a
// candidate, the probability that it is correct and the distribution of y = log2(baseline time /
// candidate time). Knows numbers only; where rows come from is the group's business.
#ifndef WORKER_MODEL_MODEL_H
#define WORKER_MODEL_MODEL_H

#include "common/err.h"
#include "worker/model/prediction.h"
#include "worker/model/training_schedule.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_CORRECT_MIN 6 // correct rows without which there is no model

// Training data; borrowed for the call.
struct model_data {
    const float *x; // rows x columns, row-major; NaN is missing
    size_t rows, columns;
    const size_t *name;                // per column: as in worker/model/ensemble.h
    const bool *param;                 // per column: it is a template parameter
    const bool *compiled;              // per row; NULL: all
    const bool *correct;               // per row; those that did not compile are not
    const double *y;                   // per row; read where correct
    bool uncompiled;                   // predictions are of candidates that may not compile
    uint64_t first;                    // number of row 0 among all rows that there ever were
    struct training_schedule schedule; // of the expensive parts; its quarter is not read
};

struct model; // immutable

// Fits a model. Deterministic: a function of the data. old (NULL: none) is a model of earlier rows
// with the same columns or fewer, and saves time: its parts that are not yet to be trained again
// are shared (worker/model/ensemble.h) or extended (worker/model/gaussian_process.h). ERR_INVALID
// with fewer than MODEL_CORRECT_MIN correct rows; ERR_INTERNAL from XGBoost.
MUST_CHECK int model_fit(struct model **ret, const struct model *old, const struct model_data *data,
                         struct err *err);
void model_free(struct model *model); // NULL is fine; any thread

// Writes one prediction for each row of x, which has the columns of the training data. A row's
// prediction does not depend on the other rows. Predictions are valid as long as the model. Several
// threads may call this at once.
MUST_CHECK int model_predict(const struct model *model, const float *x, size_t rows,
                             struct prediction *out, struct err *err);

#endif
