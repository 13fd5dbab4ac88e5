// Gradient-boosted trees: trains and evaluates one boosted model with XGBoost. The only module that
// knows XGBoost. Called by the ensembles of the static engine. Training uses one thread and is
// deterministic: equal inputs give equal trees. Functions may be called from any thread, and
// boost_predict on one model from several threads at once.
#ifndef WORKER_MODEL_BOOST_H
#define WORKER_MODEL_BOOST_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOST_CELLS_MAX ((size_t)1 << 26) // rows * columns of one matrix

struct boost_config {
    bool logistic;   // labels are 0 or 1, predictions probabilities; else squared error
    bool rank;       // learns the order of rows by their labels, which are >= 0 (LambdaMART's
                     // pairwise objective); predictions have no unit
    unsigned rounds; // trees, at least 1
    unsigned depth;  // of one tree, at least 1
    double rate;     // learning rate: shrinkage of one tree, (0, 1]
    double min_child_weight; // least sum of hessians in a leaf: rows, or p (1 - p) when logistic
    double row_share;        // share of the rows that one tree is trained on, (0, 1]
    double column_share;     // share of the columns that one tree may use, (0, 1]
    double penalty;          // L2 penalty on the values of leaves
    double gain_least;       // loss reduction that a split needs, >= 0
    unsigned bins;           // histogram bins per column; 0: 32
    uint32_t seed;           // for the sampling of rows and columns
};

struct boost; // a trained model

// Trains on the row-major matrix x, in which NaN is a missing value. label has `rows` entries. The
// inputs are borrowed for the call. ERR_INVALID when rows or columns is 0, ERR_LIMIT beyond
// BOOST_CELLS_MAX, ERR_INTERNAL with the first line of XGBoost's message.
MUST_CHECK int boost_train(struct boost **ret, const struct boost_config *config, const float *x,
                           size_t rows, size_t columns, const float *label, struct err *err);

// The same with early stopping: after each tree enough() is called with the number of the round and
// the predictions so far, one per row of x. Training ends when it returns true, or after all
// rounds.
typedef bool boost_enough(void *owner, unsigned round, const float *prediction);
MUST_CHECK int boost_train_until(struct boost **ret, const struct boost_config *config,
                                 const float *x, size_t rows, size_t columns, const float *label,
                                 boost_enough *enough, void *owner, struct err *err);

// Writes one prediction per row into out. columns must be those of training.
MUST_CHECK int boost_predict(const struct boost *boost, const float *x, size_t rows, size_t columns,
                             float *out, struct err *err);

void boost_free(struct boost *boost); // NULL is fine

#endif
