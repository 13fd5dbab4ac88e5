// Columns of a row-major matrix of floats (rows x columns, NaN is a missing value): which of them
// are worth training on, where they are in another matrix, and a copy of only them. Called by the
// ensembles and the model. Pure functions.
#ifndef WORKER_MODEL_COLUMNS_H
#define WORKER_MODEL_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

// The indices of the columns that vary and do not repeat another one; a column repeats another one
// when it is a linear function of it. Of two such columns a parameter (param[column]) is kept, else
// the first; parameters come first in the list. take: the rows to look at; NULL: all. The caller
// frees the array of *ret_count indices.
size_t *columns_informative(const float *x, size_t rows, size_t columns, const bool *param,
                            const bool *take, size_t *ret_count);

// The indices of the columns whose names are wanted[0 … count - 1]. name[column] is the column's
// name, a number; NULL: its index. NULL when a wanted column is missing; else the caller frees the
// array.
size_t *columns_find(const size_t *name, size_t columns, const size_t *wanted, size_t count);

// Copies columns index[0 … count - 1] of the rows with keep[row] (NULL: all). The caller frees the
// matrix of *ret_rows x count values.
float *columns_gather(const size_t *index, size_t count, const float *x, size_t rows,
                      size_t columns, const bool *keep, size_t *ret_rows);

#endif
