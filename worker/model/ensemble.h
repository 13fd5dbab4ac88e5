// A cross-fitted ensemble of boosted models (worker/model/boost.h): each member leaves one fold of
// the rows out. The mean of the members is the prediction for a new row; for a row of the training
// data there is the out-of-fold prediction, by the member that has not seen it.
//
// So that a new row costs the training of one member and not of all, members are trained in turn:
// each at most `folds` turns of the training schedule ago, on the rows that were there then. What a
// member is trained on follows from the rows' numbers alone, not from the history of calls, so that
// fitting once gives the same ensemble as fitting after every row. Called by the model.
#ifndef WORKER_MODEL_ENSEMBLE_H
#define WORKER_MODEL_ENSEMBLE_H

#include "common/err.h"
#include "worker/model/boost.h"
#include "worker/model/training_schedule.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENSEMBLE_FOLDS_MAX 10
#define ENSEMBLE_ROWS_LEAST 12 // a member is trained on at least so many rows, once there are

// Training data; borrowed for each call.
struct ensemble_data {
    const float *x; // rows x columns, row-major; NaN is missing
    size_t rows, columns;
    uint64_t first;     // number of row 0; the numbers of later rows follow
    const size_t *name; // per column: a number that identifies the column even when others are
                        // inserted before it; NULL: its index
    const bool *param;  // per column: of two equal columns a parameter is kept
    const bool *take;   // per row: the rows to learn from; NULL: all
    const float *label; // per row; read where taken
    struct training_schedule schedule; // one member is trained at each turn
};

struct ensemble;

// Fits an ensemble. Members of old (NULL: none) that are still due are shared with it. old stays as
// it is; either one may be freed first, by any thread. Errors are boost_train's. Where no column
// varies a member predicts the mean of its labels.
MUST_CHECK int ensemble_fit(struct ensemble **ret, const struct ensemble *old,
                            const struct boost_config *config, size_t folds,
                            const struct ensemble_data *data, struct err *err);
void ensemble_free(struct ensemble *ensemble); // NULL is fine

// Writes the mean prediction of the members for each row of x into out. x has the columns of the
// training data.
MUST_CHECK int ensemble_predict(const struct ensemble *ensemble, const float *x, size_t rows,
                                float *out, struct err *err);
// Writes the out-of-fold prediction of every taken row of data into out[row].
MUST_CHECK int ensemble_out_of_fold(const struct ensemble *ensemble,
                                    const struct ensemble_data *data, float *out, struct err *err);

#endif
