#include "worker/model/feature.h"

#include "common/mem.h"
#include "proto/bins.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define COLUMN_NAME_MAX 80 // "object:" and the longest name of a fact

struct column {
    char name[COLUMN_NAME_MAX];
    size_t index;
    UT_hash_handle hh;
};

struct feature_columns {
    struct column *by_name; // hash table
    struct column *by_index[FEATURE_COLUMN_MAX];
    size_t count;
};

struct feature_columns *feature_columns_create(void)
{
    return xcalloc(1, sizeof(struct feature_columns));
}

void feature_columns_free(struct feature_columns *columns)
{
    if (!columns) {
        return;
    }
    HASH_CLEAR(hh, columns->by_name);
    for (size_t i = 0; i < columns->count; i++) {
        free(columns->by_index[i]);
    }
    free(columns);
}

size_t feature_columns_count(const struct feature_columns *columns)
{
    return columns->count;
}

const char *feature_columns_name(const struct feature_columns *columns, size_t column)
{
    return columns->by_index[column]->name;
}

bool feature_columns_is_param(const struct feature_columns *columns, size_t column)
{
    const char *name = columns->by_index[column]->name;
    return strncmp(name, "param:", 6) == 0 || strncmp(name, "source:define:", 14) == 0 ||
           strncmp(name, "source:warm:", 12) == 0 || strcmp(name, "forecast:mean_log2") == 0;
}

bool feature_columns_is_uncompiled(const struct feature_columns *columns, size_t column)
{
    const char *name = columns->by_index[column]->name;
    return strncmp(name, "param:", 6) == 0 || strncmp(name, "source:", 7) == 0 ||
           strncmp(name, "device:", 7) == 0;
}

static int by_name(const void *a, const void *b)
{
    const struct column *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

size_t *feature_columns_sorted(const struct feature_columns *columns)
{
    struct column **column = xmemdup(columns->by_index, columns->count * sizeof(struct column *));
    size_t *order = xcalloc(columns->count + 1, sizeof(*order));
    if (columns->count) {
        qsort(column, columns->count, sizeof(*column), by_name);
    }
    for (size_t i = 0; i < columns->count; i++) {
        order[i] = column[i]->index;
    }
    free(column);
    return order;
}

static const struct column *find(const struct feature_columns *columns, const char *name)
{
    struct column *column = NULL;
    HASH_FIND_STR(columns->by_name, name, column);
    return column;
}

static const struct column *add(struct feature_columns *columns, const char *name)
{
    if (columns->count == FEATURE_COLUMN_MAX) {
        return NULL;
    }
    struct column *column = xcalloc(1, sizeof(*column));
    snprintf(column->name, sizeof(column->name), "%s", name);
    column->index = columns->count;
    columns->by_index[columns->count++] = column;
    HASH_ADD_STR(columns->by_name, name, column);
    return column;
}

struct feature_columns *feature_columns_copy(const struct feature_columns *columns)
{
    struct feature_columns *copy = feature_columns_create();
    for (size_t i = 0; i < columns->count; i++) {
        (void)add(copy, columns->by_index[i]->name);
    }
    return copy;
}

// A row that is being filled. learn is columns, or NULL when the dictionary must not change.
struct filling {
    const struct feature_columns *columns;
    struct feature_columns *learn;
    struct feature_row row;
};

// Sets the column "prefix:fact" of the row, unless it is set or the value is unusable.
static void put(struct filling *fill, const char *prefix, const char *fact, double value)
{
    char name[COLUMN_NAME_MAX];
    int len = snprintf(name, sizeof(name), "%s:%s", prefix, fact);
    if (len >= (int)sizeof(name) || !isfinite(value) || fabs(value) > FEATURE_MAGNITUDE_MAX) {
        return;
    }
    const struct column *column = find(fill->columns, name);
    if (!column && fill->learn) {
        column = add(fill->learn, name);
    }
    if (!column) {
        return;
    }
    struct feature_row *row = &fill->row;
    if (column->index >= row->count) {
        size_t count = fill->columns->count;
        row->value = xrealloc(row->value, count, sizeof(*row->value));
        for (size_t i = row->count; i < count; i++) {
            row->value[i] = NAN;
        }
        row->count = count;
    }
    if (isnan(row->value[column->index])) {
        row->value[column->index] = (float)value;
    }
}

static double log_of_count(double value)
{
    return value >= 0 ? log2(1 + value) : value;
}

// The logarithm, continued below 1 by a line. So the values 0 and 1 of a switch differ, as they
// would not if 0 stayed 0, and the order of all values is kept.
static double log_of_parameter(double value)
{
    return value >= 1 ? log2(value) : value - 1;
}

static const struct fact *find_fact(const struct fact *fact, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fact[i].name, name) == 0) {
            return &fact[i];
        }
    }
    return NULL;
}

// Adds the columns of another forecaster's forecast.
static void put_forecast(struct filling *fill, const struct raw_forecast *raw)
{
    double sum = 0, mean = 0, square = 0;
    put(fill, "forecast", "p_correct", raw->p_correct);
    put(fill, "forecast", "p_improves", raw->p_improves);
    for (size_t b = 0; b < BIN_COUNT && raw->bins_count == BIN_COUNT; b++) {
        sum += raw->bins[b];
        mean += raw->bins[b] * bin_midpoint(b);
        square += raw->bins[b] * bin_midpoint(b) * bin_midpoint(b);
    }
    if (!(sum > 0)) {
        return;
    }
    mean /= sum;
    put(fill, "forecast", "mean_log2", mean);
    put(fill, "forecast", "spread", sqrt(fmax(square / sum - mean * mean, 0)));
}

static struct feature_row fill_row(struct filling *fill, const struct feature_facts *facts)
{
    const struct candidate_facts *candidate = facts->candidate;
    for (size_t i = 0; i < candidate->features_count; i++) {
        const struct fact *fact = &candidate->features[i];
        const struct fact *base = find_fact(facts->baseline, facts->baseline_count, fact->name);
        put(fill, "object", fact->name, log_of_count(fact->value));
        if (base && base->value >= 0 && fact->value >= 0) {
            put(fill, "ratio", fact->name, log_of_count(fact->value) - log_of_count(base->value));
        }
    }
    for (size_t i = 0; i < candidate->params_count; i++) {
        put(fill, "param", candidate->params[i].name, log_of_parameter(candidate->params[i].value));
    }
    for (size_t i = 0; i < candidate->source_facts_count; i++) {
        put(fill, "source", candidate->source_facts[i].name,
            log_of_count(candidate->source_facts[i].value));
    }
    for (size_t i = 0; i < facts->device_count; i++) {
        put(fill, "device", facts->device[i].name, log_of_parameter(facts->device[i].value));
    }
    if (candidate->raw) {
        put_forecast(fill, candidate->raw);
    }
    return fill->row;
}

struct feature_row feature_row_learn(struct feature_columns *columns,
                                     const struct feature_facts *facts)
{
    struct filling fill = {.columns = columns, .learn = columns};
    return fill_row(&fill, facts);
}

struct feature_row feature_row_of(const struct feature_columns *columns,
                                  const struct feature_facts *facts)
{
    struct filling fill = {.columns = columns};
    return fill_row(&fill, facts);
}

void feature_row_clear(struct feature_row *row)
{
    free(row->value);
    *row = (struct feature_row){.value = NULL};
}

float feature_row_value(const struct feature_row *row, size_t column)
{
    return column < row->count ? row->value[column] : NAN;
}
