// Reads the fields that the files of all autotuners have in one form or another.
#include "client/space/import_tuner.h"
#include "client/space/space.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

// ---- units ----

// The milliseconds of a unit; 0 when it is not known. Kernel Tuner itself writes "miliseconds".
static double unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        double ms;
    } known[] = {{"milliseconds", 1}, {"miliseconds", 1},     {"ms", 1},    {"seconds", 1e3},
                 {"s", 1e3},          {"microseconds", 1e-3}, {"us", 1e-3}, {"nanoseconds", 1e-6},
                 {"ns", 1e-6}};

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcasecmp(unit, known[i].name) == 0) {
            return known[i].ms;
        }
    }
    return 0;
}

int tuner_read_unit(double *ret, const json_t *object, const char *field, const char *path,
                    const char *where, struct err *err)
{
    const json_t *value = json_object_get(object, field);

    if (!value || json_is_null(value) ||
        (json_is_string(value) && json_string_length(value) == 0)) {
        return 0;
    }
    double ms = json_is_string(value) ? unit_ms(json_string_value(value)) : 0;
    if (ms > 0) {
        *ret = ms;
        return 0;
    }
    char *shown = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    int rc = err_set(err, ERR_INVALID,
                     "%s: %s%.200s%sits \"%s\" is %.64s, which is no unit of time that is known; "
                     "nanoseconds, microseconds, milliseconds and seconds are",
                     path, where ? "configuration " : "", where ? where : "", where ? ": " : "",
                     field, shown ? shown : "odd");
    free(shown);
    return rc;
}

// ---- times ----

static int no_number(const char *path, const char *where, const char *field, struct err *err)
{
    return err_set(err, ERR_INVALID, "%s: configuration %.200s: \"%s\" is no number from 0", path,
                   where, field);
}

int tuner_read_ms(double *ret, const json_t *object, const char *field, double unit,
                  const char *path, const char *where, struct err *err)
{
    const json_t *value = json_object_get(object, field);

    *ret = NAN;
    if (!value || json_is_null(value)) {
        return 0;
    }
    if (!json_is_number(value) || json_number_value(value) < 0 ||
        !isfinite(json_number_value(value) * unit)) {
        return no_number(path, where, field, err);
    }
    *ret = json_number_value(value) * unit;
    return 0;
}

bool tuner_read_verdict(struct tuner_row *row, const struct tuner_word *word, size_t count,
                        const char *text)
{
    for (size_t i = 0; i < count && text; i++) {
        if (strcmp(text, word[i].name) == 0) {
            row->verdict = word[i].verdict;
            row->reason = row->verdict == VERDICT_NONE ? NULL : word[i].name;
            return true;
        }
    }
    return false;
}

int tuner_read_times(struct tuner_row *row, const json_t *list, double unit, const char *path,
                     const char *where, struct err *err)
{
    size_t i;
    const json_t *value;

    if (!list || json_is_null(list)) {
        return 0;
    }
    if (!json_is_array(list)) {
        return err_set(err, ERR_INVALID, "%s: configuration %.200s: its times are no list", path,
                       where);
    }
    row->times = xcalloc(json_array_size(list) + 1, sizeof(*row->times));
    json_array_foreach ((json_t *)(uintptr_t)list, i, value) {
        double ms = json_number_value(value) * unit;
        if (json_is_number(value) && isfinite(ms) && ms > 0) {
            row->times[row->times_count++] = ms;
        }
    }
    return 0;
}

int tuner_check_row(const struct tuner *tuner, const struct tuner_row *row, const char *path,
                    const char *where, struct err *err)
{
    if (row->verdict == VERDICT_NONE && !(row->time > 0 && isfinite(row->time))) {
        return err_set(err, ERR_INVALID,
                       "%s: configuration %.200s has no \"%s\" above 0 and no error; only what was "
                       "tuned for time becomes a space",
                       path, where, tuner->time_field);
    }
    for (size_t i = 0; i < tuner->param_count; i++) {
        if (!json_object_get(row->config, tuner->param[i].name)) {
            return err_set(err, ERR_INVALID, "%s: configuration %.200s has no \"%.64s\"", path,
                           where, tuner->param[i].name);
        }
    }
    return 0;
}

int tuner_add_param(struct tuner *tuner, const char *name, const char *path, struct err *err)
{
    if (tuner->param_count == TUNER_PARAM_MAX || strlen(name) > 64) {
        return err_set(err, ERR_LIMIT,
                       "%s: more than %d parameters, or one with a name of more than 64 bytes",
                       path, TUNER_PARAM_MAX);
    }
    tuner->param[tuner->param_count++].name = name;
    return 0;
}

int tuner_make_rows(struct tuner *tuner, size_t count, const char *path, struct err *err)
{
    if (count == 0 || count > SPACE_CANDIDATES_MAX) {
        return err_set(err, count == 0 ? ERR_INVALID : ERR_LIMIT,
                       "%s: %zu configurations; a space has 1 to %zu", path, count,
                       SPACE_CANDIDATES_MAX);
    }
    if (tuner->param_count == 0) {
        return err_set(err, ERR_INVALID, "%s: its configurations have no parameters", path);
    }
    tuner->row = xcalloc(count, sizeof(*tuner->row));
    return 0;
}
