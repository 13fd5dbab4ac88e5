// The probability that a candidate is correct, learnt from which outcomes were. Part of the model
// (worker/model/model.h), which is its only caller. Pure numbers.
#ifndef WORKER_MODEL_CORRECTNESS_H
#define WORKER_MODEL_CORRECTNESS_H

#include "common/err.h"
#include "worker/model/ensemble.h"
#include <stdbool.h>
#include <stddef.h>

// Embedded by value; zeroed memory is an object that may be released.
struct correctness {
    double rate;               // share of correct rows, shrunk to a prior
    struct ensemble *ensemble; // classifies rows; NULL: rate is the probability of every candidate
    double offset, slope;      // logit p = offset + slope * logit(prediction of the ensemble)
};

// Fits to the taken rows of data, whose label is not read. correct[row]. classify: train the
// classifier when there are enough rows; otherwise only the rate is computed. Members of the
// ensemble of old (NULL: none) are shared where they are still due. Errors are ensemble_fit's;
// *ret may then be released.
MUST_CHECK int correctness_fit(struct correctness *ret, const struct correctness *old,
                               const struct ensemble_data *data, const bool *correct, bool classify,
                               struct err *err);
void correctness_release(struct correctness *correctness);

// Writes the probability of each row of x into out. Never 0 or 1.
MUST_CHECK int correctness_predict(const struct correctness *correctness, const float *x,
                                   size_t rows, double *out, struct err *err);

#endif
