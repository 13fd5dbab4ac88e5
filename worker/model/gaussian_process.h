// Gaussian process regression for a few dozen to a few hundred rows. It is smooth in template
// parameters where boosted trees are still coarse, and it knows how far a point is from everything
// that was measured. Called by the model. Pure numbers; one object may be read by several threads.
//
// The covariance of two rows is s2 * (Matern 5/2 of their distance d + noise on the diagonal), with
//
//   d^2 = sum over the "own" columns of weight * diff^2 + one shared weight * the mean of diff^2
//         over all other columns.
//
// A weight is an inverse squared length scale. Columns are standardised; a missing value counts as
// the column's mean. The weights and the noise maximise the marginal likelihood with log-normal
// priors; they are found by coordinate search on at most GAUSSIAN_PROCESS_SEARCH_ROWS rows. After
// Rasmussen & Williams 2006, "Gaussian Processes for Machine Learning", chapters 2, 4 and 5
// (left-out predictions: 5.4.2).
#ifndef WORKER_MODEL_GAUSSIAN_PROCESS_H
#define WORKER_MODEL_GAUSSIAN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#define GAUSSIAN_PROCESS_FIT_ROWS 512    // rows of one fit, the newest: the cost is cubic
#define GAUSSIAN_PROCESS_SEARCH_ROWS 128 // of these, so many of the newest determine the weights
#define GAUSSIAN_PROCESS_OWN_MAX 12      // columns with a weight of their own; others share one

struct gaussian_process;

// Fits to x (rows x columns, row-major, NaN is missing) and y, which has a mean of about 0 and a
// variance of about 1; rows >= 2. own[column]: the column gets a weight of its own. Of more than
// GAUSSIAN_PROCESS_FIT_ROWS rows the last ones are used. Deterministic. The inputs are borrowed for
// the call.
struct gaussian_process *gaussian_process_fit(const float *x, size_t rows, size_t columns,
                                              const bool *own, const double *y);

// A new process: old with further rows of the same columns, and with old's weights, noise and
// standardisation. old stays as it is. Quadratic in the rows. The result is the same whether rows
// are added one by one or at once.
struct gaussian_process *gaussian_process_extend(const struct gaussian_process *old, const float *x,
                                                 size_t rows, const double *y);
void gaussian_process_free(struct gaussian_process *process); // NULL is fine

// The rows that it was fitted to and extended by.
size_t gaussian_process_rows(const struct gaussian_process *process);

// Writes the mean and the standard deviation of a measured value (noise included) at the row x of
// `columns` values.
void gaussian_process_predict(const struct gaussian_process *process, const float *x,
                              double *ret_mean, double *ret_sd);

// The same at row i of gaussian_process_rows(), oldest first, as if that row had been left out. The
// weights stay those of all rows.
void gaussian_process_left_out(const struct gaussian_process *process, size_t i, double *ret_mean,
                               double *ret_sd);

#endif
