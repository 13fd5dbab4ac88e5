#include "client/propose/warm.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#define LOG2_MAX 40.0 // a larger speedup, as log2, is no measurement

// What is known of one configuration.
struct known {
    char *key; // its parameters
    double log2;
    UT_hash_handle hh;
};

struct warm {
    double *log2;  // [points]: NaN where nothing is known or it was not correct
    size_t *order; // correct points, the best elsewhere first
    size_t count;  // of them
};

// ---- keys ----

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct fact *)a)->name, ((const struct fact *)b)->name);
}

// The parameters as one text, in the order of their names; malloc'd.
static char *key_of(struct fact *fact, size_t count)
{
    struct strbuf key = STRBUF_INIT;
    if (count > 0) {
        qsort(fact, count, sizeof(*fact), by_name);
    }
    for (size_t i = 0; i < count; i++) {
        // Numbers of a space are of single precision.
        strbuf_addf(&key, "%s=%.9g\n", fact[i].name, (double)(float)fact[i].value);
    }
    return strbuf_detach(&key);
}

// ---- reading ----

static int read_params(const json_t *params, char **ret_key, const char *path, size_t number,
                       struct err *err)
{
    size_t count = json_object_size(params);
    if (count == 0) {
        return err_set(err, ERR_INVALID, "%s:%zu: \"params\" is missing, empty or no object", path,
                       number);
    }
    struct fact *fact = xcalloc(count, sizeof(*fact));
    const char *name;
    json_t *value;
    size_t i = 0;
    int rc = 0;
    json_object_foreach ((json_t *)(uintptr_t)params, name, value) {
        if (!json_is_number(value)) {
            rc = err_set(err, ERR_INVALID, "%s:%zu: the parameter %.80s is no number", path, number,
                         name);
            break;
        }
        fact[i++] =
            (struct fact){.name = (char *)(uintptr_t)name, .value = json_number_value(value)};
    }
    *ret_key = rc == 0 ? key_of(fact, count) : NULL;
    free(fact);
    return rc;
}

// Reads one line into the table. Of two lines with the same parameters the first counts.
static int read_line(struct known **table, const char *line, size_t len, const char *path,
                     size_t number, struct err *err)
{
    json_error_t why;
    json_auto_t *object = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
    if (!object) {
        return err_set(err, ERR_INVALID, "%s:%zu: no JSON: %s", path, number, why.text);
    }
    const json_t *log2 = json_object_get(object, "log2");
    double value = json_is_number(log2) ? json_number_value(log2) : NAN;
    if (!(json_is_null(log2) || fabs(value) <= LOG2_MAX)) {
        return err_set(err, ERR_INVALID,
                       "%s:%zu: \"log2\" is missing, or neither null nor a number from -%g to %g",
                       path, number, LOG2_MAX, LOG2_MAX);
    }
    char *key = NULL;
    int rc = read_params(json_object_get(object, "params"), &key, path, number, err);
    struct known *known = NULL;
    if (rc == 0) {
        HASH_FIND_STR(*table, key, known);
    }
    if (rc != 0 || known) {
        free(key);
        return rc;
    }
    known = xcalloc(1, sizeof(*known));
    known->key = key;
    known->log2 = value;
    HASH_ADD_KEYPTR(hh, *table, known->key, strlen(known->key), known);
    return 0;
}

static int read_lines(struct known **table, const struct bytes *text, const char *path,
                      struct err *err)
{
    const char *line = (const char *)text->data, *end = line + text->len;
    int rc = 0;
    for (size_t number = 1; rc == 0 && line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((newline ? newline : end) - line);
        rc = len > 0 ? read_line(table, line, len, path, number, err) : 0;
        line += len + 1;
    }
    return rc;
}

static void free_table(struct known **table)
{
    struct known *known, *next;
    HASH_ITER (hh, *table, known, next) {
        HASH_DEL(*table, known);
        free(known->key);
        free(known);
    }
}

// ---- points ----

static int by_log2(const void *a, const void *b, void *owner)
{
    const double *log2 = owner;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    if (log2[x] != log2[y]) {
        return log2[x] > log2[y] ? -1 : 1;
    }
    return x < y ? -1 : x > y;
}

// Finds what is known of each point of the generator. Returns how many are known.
static size_t find_points(struct warm *warm, struct known *table, const struct generator *generator)
{
    size_t found = 0;
    for (size_t point = 0; point < generator->point_count; point++) {
        struct fact *fact;
        size_t count = generator->ops->params(generator, point, &fact);
        char *key = key_of(fact, count);
        struct known *known;
        HASH_FIND_STR(table, key, known);
        warm->log2[point] = known ? known->log2 : NAN;
        found += known ? 1 : 0;
        if (known && !isnan(known->log2)) {
            warm->order[warm->count++] = point;
        }
        for (size_t i = 0; i < count; i++) {
            free(fact[i].name);
        }
        free(fact);
        free(key);
    }
    qsort_r(warm->order, warm->count, sizeof(*warm->order), by_log2, warm->log2);
    return found;
}

int warm_create(struct warm **ret, const struct bytes *text, const char *path,
                const struct generator *generator, struct err *err)
{
    struct known *table = NULL;
    struct warm *warm = NULL;
    int rc = read_lines(&table, text, path, err);
    if (rc != 0) {
        goto out;
    }
    warm = xcalloc(1, sizeof(*warm));
    warm->log2 = xcalloc(generator->point_count + 1, sizeof(*warm->log2));
    warm->order = xcalloc(generator->point_count + 1, sizeof(*warm->order));
    if (find_points(warm, table, generator) == 0) {
        rc = err_set(err, ERR_INVALID,
                     "%s has no candidate with the parameters of a point of this search", path);
        goto out;
    }
    if (warm->count < WARM_TRIED) {
        rc = err_set(err, ERR_INVALID,
                     "%s has only %zu correct candidates among the points of this search; at least "
                     "%d are needed to begin with them",
                     path, warm->count, WARM_TRIED);
        goto out;
    }
    *ret = warm;
    warm = NULL;
out:
    free_table(&table);
    warm_free(warm);
    return rc;
}

size_t warm_generator(const struct generator *const *generator, size_t count)
{
    size_t number = 0;
    while (number < count && (generator[number]->asks || generator[number]->axis_count == 0)) {
        number++;
    }
    return number;
}

void warm_free(struct warm *warm)
{
    if (warm) {
        free(warm->log2);
        free(warm->order);
        free(warm);
    }
}

double warm_log2(const struct warm *warm, size_t point)
{
    return warm->log2[point];
}

// ---- does it hold here ----

bool warm_holds(const struct warm *warm, const struct strategy_view *view)
{
    double there[WARM_TRIED], here[WARM_TRIED], agree = 0;
    size_t n = 0, point;
    for (uint64_t id = 1; id <= view->visible && n < WARM_TRIED; id++) {
        if (!strategy_point(view, id, &point) || isnan(warm->log2[point])) {
            continue;
        }
        double y = -INFINITY;
        if (strategy_score(view, id, &y) || strategy_failed(view, id)) {
            there[n] = warm->log2[point];
            here[n++] = y;
        }
    }
    if (n < WARM_TRIED) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) {
            int a = (there[i] > there[j]) - (there[i] < there[j]),
                b = (here[i] > here[j]) - (here[i] < here[j]);
            agree += a * b;
        }
    }
    return agree / (WARM_TRIED * (WARM_TRIED - 1) / 2.0) >= WARM_TAU;
}

// ---- choosing ----

// The point that is tried at this place, from 0: in turn the best ones, and those at equal
// distances in the ranking, the worst last.
static size_t to_be_tried(const struct warm *warm, size_t place)
{
    size_t half = WARM_TRIED / 2, i = place / 2;
    return warm->order[place % 2 == 0 ? i : (i + 1) * (warm->count - 1) / half];
}

size_t warm_choose(const struct warm *warm, const struct strategy_view *view, size_t want,
                   struct strategy_choice *out)
{
    bool *taken = strategy_taken(view);
    size_t count = 0;
    for (size_t place = 0; place < WARM_TRIED + warm->count && count < want; place++) {
        size_t point =
            place < WARM_TRIED ? to_be_tried(warm, place) : warm->order[place - WARM_TRIED];
        if (!taken[point]) {
            taken[point] = true;
            out[count++] = (struct strategy_choice){.point = point};
        }
    }
    free(taken);
    return count;
}
