// Gradient-boosted regression trees: XGBoost behind three functions. The only module that knows
// XGBoost. Single-threaded and deterministic: equal inputs give equal trees. Functions may be
// called from any thread, predictions of one model from several at once.
#ifndef WORKER_MODEL_BOOST_H
#define WORKER_MODEL_BOOST_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOST_CELLS_MAX ((size_t)1 << 26) // rows * columns of one matrix

struct boost_config {
    bool logistic;           // labels are 0 or 1, predictions probabilities; else squared error
    bool rank;               // pairs of rows are put in the order of their labels, which are >= 0
                             // (LambdaMART's pairwise objective); predictions have no unit
    unsigned rounds;         // trees, at least 1
    unsigned depth;          // of one tree, at least 1
    double rate;             // shrinkage of one tree, (0, 1]
    double min_child_weight; // least sum of row weights in a leaf (of p (1 - p), when logistic)
    double row_share;        // of the rows that one tree sees, (0, 1]
    double column_share;     // of the columns that one tree sees, (0, 1]
    double penalty;          // L2 on leaf values
    double gain_least;       // loss that a split has to save, >= 0
    unsigned bins;           // that a column is cut into; 0: 32
    uint32_t seed;           // of the row and column sampling
};

struct boost; // a trained model

// Trains on a row-major matrix x; NaN is a missing value. label has `rows` entries. The inputs stay
// the caller's. ERR_INVALID when rows or columns is 0, ERR_LIMIT beyond BOOST_CELLS_MAX,
// ERR_INTERNAL with XGBoost's own sentence.
MUST_CHECK int boost_train(struct boost **ret, const struct boost_config *config, const float *x,
                           size_t rows, size_t columns, const float *label, struct err *err);

// The same, but after each tree enough(owner, round, prediction) is asked, prediction being one
// number per row of x so far, and training ends when it says so, or after all rounds.
typedef bool boost_enough(void *owner, unsigned round, const float *prediction);
MUST_CHECK int boost_train_until(struct boost **ret, const struct boost_config *config,
                                 const float *x, size_t rows, size_t columns, const float *label,
                                 boost_enough *enough, void *owner, struct err *err);

// One prediction per row into out. columns must be those of training.
MUST_CHECK int boost_predict(struct boost *boost, const float *x, size_t rows, size_t columns,
                             float *out, struct err *err);

void boost_free(struct boost *boost);

#endif
