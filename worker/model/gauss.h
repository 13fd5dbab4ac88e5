// Gaussian process regression for a few dozen to a few hundred rows: smooth in template parameters
// where boosted trees are still coarse, and it knows how far a point is from everything measured.
//
// Covariance: s2 * (Matern 5/2 of the distance d + noise on the diagonal), d^2 = sum over "own"
// columns of weight * diff^2 plus one weight * the mean diff^2 over all other columns. Columns are
// standardised; a missing value is the column's mean. The weights and the noise maximise the
// marginal likelihood with log-normal priors, by coordinate search on at most GAUSS_SEARCH_ROWS
// rows. After Rasmussen & Williams 2006, chapters 2, 4 and 5 (left-out residuals: 5.4.2).
#ifndef WORKER_MODEL_GAUSS_H
#define WORKER_MODEL_GAUSS_H

#include <stdbool.h>
#include <stddef.h>

#define GAUSS_FIT_ROWS 512    // rows of one fit, the newest: the cost is cubic
#define GAUSS_SEARCH_ROWS 128 // of these, the newest are used to find the weights
#define GAUSS_OWN_MAX 12      // columns with a weight of their own; further ones share

struct gauss;

// Fits to rows x columns values (row-major, NaN is missing) and y of mean about 0 and variance
// about 1, rows >= 2. own[column]: the column gets a weight of its own. Of more than GAUSS_FIT_ROWS
// rows the last are taken. Deterministic.
struct gauss *gauss_fit(const float *x, size_t rows, size_t columns, const bool *own,
                        const double *y);
// What old is after more rows, with its weights, its noise and its columns' centres kept; old
// stays. Quadratic in the rows. The same whether rows come one by one or at once.
struct gauss *gauss_extend(const struct gauss *old, const float *x, size_t rows, const double *y);
void gauss_free(struct gauss *gauss);

size_t gauss_rows(const struct gauss *gauss); // that it was fitted to and extended by

// Mean and standard deviation (of a measured value, noise included) at one row of `columns` values.
void gauss_predict(const struct gauss *gauss, const float *x, double *ret_mean, double *ret_sd);

// The same at row i < gauss_rows(), oldest first, had it been left out (weights kept).
void gauss_left_out(const struct gauss *gauss, size_t i, double *ret_mean, double *ret_sd);

#endif
