// From named facts about a candidate to a row of numbers. The columns of one group of outcomes (a
// problem on a class of devices) are a dictionary that only grows, in order of first appearance;
// what a row lacks is missing (NaN), never zero.
//
// Column            from                          value
// object:NAME       feature of the compiled code  log2(1 + v) when v >= 0, else v
// ratio:NAME        the same over the baseline's  log2((1 + v) / (1 + baseline)), when both are >=
// 0 param:NAME        parameter of the template     log2(v) when v > 0, else v device:NAME fact
// about the device         like param
// forecast:NAME         another forecaster's words     mean_log2, spread, p_correct, p_improves as they are
//
// Counts and sizes act by their ratios, hence the logarithms. What the problem is needs no column:
// it names the group.
#ifndef WORKER_MODEL_FEATURE_H
#define WORKER_MODEL_FEATURE_H

#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

#define FEATURE_COLUMN_MAX 640
#define FEATURE_MAGNITUDE_MAX 1e30 // a fact beyond this (or not finite) is missing

struct feature_columns;

struct feature_columns *feature_columns_create(void);
void feature_columns_free(struct feature_columns *columns);
size_t feature_columns_count(const struct feature_columns *columns);
const char *feature_columns_name(const struct feature_columns *columns, size_t column);
// The column is a parameter of the template, or as telling: another forecaster's mean.
bool feature_columns_is_param(const struct feature_columns *columns, size_t column);
// The columns' numbers in the order of their names, malloc'd, feature_columns_count() of them.
size_t *feature_columns_sorted(const struct feature_columns *columns);

// What is known about one candidate and its surroundings; all of it borrowed.
struct feature_facts {
    const struct candidate_facts *candidate;
    const struct fact *baseline; // features of the compiled baseline
    size_t baseline_count;
    const struct fact *device;
    size_t device_count;
};

// One row. Columns from `count` on are missing: the dictionary has grown since.
struct feature_row {
    float *value; // malloc'd
    size_t count;
};

// Builds the row of facts. learn: names that are new become columns (until there are
// FEATURE_COLUMN_MAX); otherwise they are passed over and columns is not changed. Of a name that
// comes twice the first counts.
struct feature_row feature_row_learn(struct feature_columns *columns,
                                     const struct feature_facts *facts);
struct feature_row feature_row_of(const struct feature_columns *columns,
                                  const struct feature_facts *facts);
void feature_row_clear(struct feature_row *row);
float feature_row_value(const struct feature_row *row, size_t column); // NaN when missing

#endif
