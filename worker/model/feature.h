// Features: turns named facts about a candidate into a row of numbers for a model. Each group
// (worker/model/group.h) has its own columns, a dictionary that only grows, in the order of first
// appearance. A value that a row lacks is missing (NaN), never zero. Knows nothing of models.
//
// Column         comes from                      value
// object:NAME    a feature of the compiled code  log2(1 + v) where v >= 0, else v
// ratio:NAME     the same and the baseline's     log2((1 + v) / (1 + baseline)), if both are >= 0
// param:NAME     a parameter of the template     log2(v) where v >= 1, else v - 1
// source:NAME    a fact about the source         log2(1 + v) where v >= 0, else v
// device:NAME    a fact about the device         log2(v) where v >= 1, else v - 1
// forecast:NAME  another forecaster's forecast   mean_log2, spread, p_correct, p_improves as given
//
// Counts and sizes matter by their ratios, hence the logarithms. The problem is not a column, since
// all rows of a group have the same.
#ifndef WORKER_MODEL_FEATURE_H
#define WORKER_MODEL_FEATURE_H

#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

#define FEATURE_COLUMN_MAX 640     // columns of a group; further names are left out
#define FEATURE_MAGNITUDE_MAX 1e30 // a value beyond this, or not finite, is missing

struct feature_columns; // the dictionary of one group

struct feature_columns *feature_columns_create(void);
void feature_columns_free(struct feature_columns *columns); // NULL is fine
// The columns as they are now, the caller's.
struct feature_columns *feature_columns_copy(const struct feature_columns *columns);
size_t feature_columns_count(const struct feature_columns *columns);
const char *feature_columns_name(const struct feature_columns *columns, size_t column);
// Whether the column is a parameter of the template, or another forecaster's mean, which is as
// informative as one.
bool feature_columns_is_param(const struct feature_columns *columns, size_t column);
// Whether the column is known before a candidate is compiled: a parameter or a fact about the
// device.
bool feature_columns_is_uncompiled(const struct feature_columns *columns, size_t column);
// The indices of all columns in the order of their names, feature_columns_count() of them. The
// caller frees the array.
size_t *feature_columns_sorted(const struct feature_columns *columns);

// What is known about one candidate, the baseline and the device. Everything is borrowed.
struct feature_facts {
    const struct candidate_facts *candidate;
    const struct fact *baseline; // features of the compiled baseline
    size_t baseline_count;
    const struct fact *device;
    size_t device_count;
};

// One row. Columns from `count` on are missing: they were added to the dictionary later.
struct feature_row {
    float *value; // owned; [count]
    size_t count;
};

// Both build the row of the facts. feature_row_learn makes new names columns, up to
// FEATURE_COLUMN_MAX; feature_row_of leaves them out and does not change columns. When a name comes
// twice, the first value counts.
struct feature_row feature_row_learn(struct feature_columns *columns,
                                     const struct feature_facts *facts);
struct feature_row feature_row_of(const struct feature_columns *columns,
                                  const struct feature_facts *facts);
void feature_row_clear(struct feature_row *row);
float feature_row_value(const struct feature_row *row, size_t column); // NaN when missing

#endif
