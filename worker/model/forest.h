// Boosters that each leave a fold of the rows out (worker/model/boost.h): their mean is the prediction,
// and each row has one by a booster that has not seen it. So that a new row costs the training of
// one booster and not of all, they are trained in turn: at most `folds` turns of the schedule ago,
// each on the rows that were there then. What is trained on what follows from the rows' numbers
// alone, not from the history of calls: fitting all at once gives the same forest.
#ifndef WORKER_MODEL_FOREST_H
#define WORKER_MODEL_FOREST_H

#include "common/err.h"
#include "worker/model/boost.h"
#include "worker/schedule.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOREST_FOLDS_MAX 10
#define FOREST_ROWS_LEAST 12 // a booster is trained on as many rows, if there are

struct forest_data {
    const float *x; // rows x columns, row-major; NaN is missing
    size_t rows, columns;
    uint64_t first;     // number of row 0; later rows follow
    const size_t *name; // per column: a number that it keeps when columns come in between; NULL:
                        // its index
    const bool *param;  // per column: of two equal columns a parameter is kept
    const bool *take;   // per row; NULL: all
    const float *label; // per row; read where taken
    struct schedule schedule; // one booster is trained at each turn
};

struct forest;

// Fits. Boosters that old (NULL: none) has and that are still due are shared with it; old stays as
// it is, and either may be freed first, by any thread. Errors are boost_train's. Where nothing
// varies a booster is the mean of its labels.
MUST_CHECK int forest_fit(struct forest **ret, const struct forest *old,
                          const struct boost_config *config, size_t folds,
                          const struct forest_data *data, struct err *err);
void forest_free(struct forest *forest);

// Mean prediction for rows x columns (as in the data) into out.
MUST_CHECK int forest_predict(const struct forest *forest, const float *x, size_t rows, float *out,
                              struct err *err);
// For every taken row of data the prediction of the booster that leaves it out.
MUST_CHECK int forest_left_out(const struct forest *forest, const struct forest_data *data,
                               float *out, struct err *err);

// Where the columns with these names are, malloc'd; NULL when one is missing.
size_t *forest_find(const size_t *name, size_t columns, const size_t *wanted, size_t count);

// The columns that vary and do not repeat another one, chosen[*ret_count], malloc'd; parameters
// first. take as above.
size_t *forest_columns(const float *x, size_t rows, size_t columns, const bool *param,
                       const bool *take, size_t *ret_count);

#endif
