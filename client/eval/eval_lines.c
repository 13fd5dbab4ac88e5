// Design. A line is refused when a value would be misread (a number out of its range, a list of the
// wrong length). It is never refused for a missing value, except for the speedup of an outcome that
// needs one. Every error names the key.
#include "client/eval/eval_sets.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <math.h>
#include <string.h>

#define LOG2_MAX 64.0 // no measured speedup is beyond 2^64

// Reads one number. *ret is NaN when the number is absent or null.
static int read_number(double *ret, const json_t *object, const char *key, double min, double max,
                       struct err *err)
{
    const json_t *value = json_object_get(object, key);
    *ret = NAN;
    if (!value || json_is_null(value)) {
        return 0;
    }
    if (!json_is_number(value)) {
        return err_set(err, ERR_INVALID, "\"%s\" is no number", key);
    }
    double number = json_number_value(value);
    if (!(number >= min && number <= max)) {
        return err_set(err, ERR_INVALID, "\"%s\" is %g, which is not within %g and %g", key, number,
                       min, max);
    }
    *ret = number;
    return 0;
}

static int read_bins(struct score_row *row, const json_t *object, struct err *err)
{
    const json_t *list = json_object_get(object, "bins");
    if (!list || json_is_null(list)) {
        return 0;
    }
    if (!json_is_array(list) || json_array_size(list) != BIN_COUNT) {
        return err_set(err, ERR_INVALID, "\"bins\" is no list of %d numbers", BIN_COUNT);
    }
    double bins[BIN_COUNT];
    for (size_t i = 0; i < BIN_COUNT; i++) {
        const json_t *value = json_array_get(list, i);
        bins[i] = json_is_number(value) ? json_number_value(value) : -1;
    }
    if (!eval_set_bins(row, bins, BIN_COUNT)) {
        return err_set(err, ERR_INVALID,
                       "\"bins\" holds what is no probability, or probabilities that are all 0");
    }
    return 0;
}

// A line that names no cluster is a cluster by itself. The second argument of the hash keeps line
// numbers, integers and texts apart.
static int read_cluster(struct score_row *row, const json_t *object, size_t number, struct err *err)
{
    const json_t *value = json_object_get(object, "cluster");
    if (!value || json_is_null(value)) {
        row->cluster = stats_philox(number, 1, 0);
    } else if (json_is_integer(value)) {
        row->cluster = stats_philox((uint64_t)json_integer_value(value), 2, 0);
    } else if (json_is_string(value)) {
        row->cluster = stats_hash_text(3, json_string_value(value));
    } else {
        return err_set(err, ERR_INVALID, "\"cluster\" is neither an integer nor text");
    }
    return 0;
}

static int read_verdict(uint64_t *ret, const json_t *object, struct err *err)
{
    const json_t *value = json_object_get(object, "verdict");
    *ret = VERDICT_NONE;
    if (!value || json_is_null(value)) {
        return 0;
    }
    const char *name = json_is_string(value) ? json_string_value(value) : "";
    for (uint64_t verdict = 0; verdict_known(verdict); verdict++) {
        if (strcmp(verdict_name(verdict), name) == 0) {
            *ret = verdict;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID,
                   "\"verdict\" is none of those that docs/commands.md lists, such as \"faster\"");
}

static int read_outcome(struct score_row *row, const json_t *object, bool *ret_known,
                        struct err *err)
{
    uint64_t verdict;
    int rc = read_verdict(&verdict, object, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_number(&row->log2, object, "log2", -LOG2_MAX, LOG2_MAX, err);
    if (rc != 0) {
        return rc;
    }
    double incumbent;
    rc = read_number(&incumbent, object, "incumbent_log2", -LOG2_MAX, LOG2_MAX, err);
    if (rc != 0) {
        return rc;
    }
    row->correct = verdict_is_ratio(verdict);
    if (row->correct && isnan(row->log2)) {
        return err_set(err, ERR_INVALID, "\"log2\" is missing, which the verdict \"%s\" needs",
                       verdict_name(verdict));
    }
    row->improved =
        row->correct && row->log2 > (isnan(incumbent) ? 0 : incumbent) + IMPROVEMENT_MARGIN_LOG2;
    *ret_known = verdict != VERDICT_NONE && verdict != VERDICT_QUARANTINED;
    return 0;
}

static int read_forecast(struct score_row *row, const json_t *object, struct err *err)
{
    const struct {
        double *to;
        const char *key;
        double min, max;
    } number[] = {
        {&row->p_correct, "p_correct", 0, 1},   {&row->p_improves, "p_improves", 0, 1},
        {&row->confidence, "confidence", 0, 1}, {&row->mean_log2, "mean_log2", -LOG2_MAX, LOG2_MAX},
        {&row->weight, "propensity", 1e-9, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(number); i++) {
        int rc =
            read_number(number[i].to, object, number[i].key, number[i].min, number[i].max, err);
        if (rc != 0) {
            return rc;
        }
    }
    row->weight = isnan(row->weight) ? 1 : 1 / row->weight;
    return read_bins(row, object, err);
}

static int read_line(struct eval *eval, const char *line, size_t len, size_t number,
                     struct err *err)
{
    json_error_t why;
    json_auto_t *object = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
    if (!object) {
        return err_set(err, ERR_INVALID, "no JSON: %s", why.text);
    }
    if (!json_is_object(object)) {
        return err_set(err, ERR_INVALID, "no JSON object with a forecast");
    }
    const json_t *engine = json_object_get(object, "engine");
    if (engine && !json_is_null(engine) && !json_is_string(engine)) {
        return err_set(err, ERR_INVALID, "\"engine\" is no text");
    }
    struct score_row row = {0};
    int rc = read_forecast(&row, object, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_cluster(&row, object, number, err);
    if (rc != 0) {
        return rc;
    }
    bool known = false;
    rc = read_outcome(&row, object, &known, err);
    if (rc != 0) {
        return rc;
    }
    struct eval_set *set;
    rc = eval_set_of(eval, json_is_string(engine) ? json_string_value(engine) : EVAL_NO_ENGINE,
                     &set, err);
    if (rc != 0) {
        return rc;
    }
    if (known) {
        return eval_add(set, &row, err);
    }
    set->unmeasured++;
    return 0;
}

int eval_read_lines(struct eval *eval, const char *text, size_t len, const char *path,
                    struct err *err)
{
    const char *line = text, *end = text + len;
    for (size_t number = 1; line < end; number++) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t length = (size_t)((newline ? newline : end) - line);
        if (strspn(line, " \t\r") < length) {
            int rc = read_line(eval, line, length, number, err);
            if (rc != 0) {
                return err_wrap(err, "%s:%zu", path, number);
            }
        }
        line += length + 1;
    }
    if (eval->set_count == 0) {
        return err_set(err, ERR_INVALID, "%s holds no forecasts", path);
    }
    return 0;
}
