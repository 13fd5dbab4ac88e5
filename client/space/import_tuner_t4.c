// Reads T4 results, the format for results that Kernel Tuner shares with other tuners.
#include "client/space/import_tuner.h"
#include "common/mem.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int read_invalidity(struct tuner_row *row, const json_t *value, const char *path,
                           const char *where, struct err *err)
{
    static const struct tuner_word known[] = {{"correct", VERDICT_NONE},
                                              {"compile", VERDICT_COMPILE_ERROR},
                                              {"constraints", VERDICT_COMPILE_ERROR},
                                              {"runtime", VERDICT_CRASH},
                                              {"timeout", VERDICT_TIMEOUT},
                                              {"correctness", VERDICT_WRONG}};
    const char *text = json_string_value(value);

    if (tuner_read_verdict(row, known, ARRAY_LEN(known), text)) {
        return 0;
    }
    return err_set(err, ERR_INVALID, "%s: configuration %s: \"invalidity\" is none of T4's", path,
                   where);
}

// Reads the time among the measurements. It is in the file's unit when it names none.
static int read_measured_time(struct tuner_row *row, const json_t *list, double unit,
                              const char *path, const char *where, struct err *err)
{
    size_t i;
    const json_t *value;

    json_array_foreach ((json_t *)(uintptr_t)list, i, value) {
        const char *name = json_string_value(json_object_get(value, "name"));
        if (!name || strcmp(name, "time") != 0) {
            continue;
        }
        int rc = tuner_read_unit(&unit, value, "unit", path, where, err);
        return rc == 0 ? tuner_read_ms(&row->time, value, "value", unit, path, where, err) : rc;
    }
    return 0;
}

static int read_result(struct tuner *tuner, const json_t *object, double unit, const char *path,
                       struct err *err)
{
    struct tuner_row *row = &tuner->row[tuner->row_count++];
    const json_t *times = json_object_get(object, "times");

    *row = (struct tuner_row){.config = json_object_get(object, "configuration"), .time = NAN};
    char where[32];
    snprintf(where, sizeof(where), "%zu", tuner->row_count);
    int rc = read_invalidity(row, json_object_get(object, "invalidity"), path, where, err);
    if (rc != 0) {
        return rc;
    }
    if (row->verdict == VERDICT_NONE) {
        rc = read_measured_time(row, json_object_get(object, "measurements"), unit, path, where,
                                err);
    }
    if (rc != 0) {
        return rc;
    }
    const char *name = json_object_get(times, "compilation") ? "compilation" : "compilation_time";
    rc = tuner_read_ms(&row->compile, times, name, unit, path, where, err);
    if (rc != 0) {
        return rc;
    }
    rc = tuner_read_ms(&row->verify, times, "validation", unit, path, where, err);
    if (rc != 0) {
        return rc;
    }
    rc = tuner_read_ms(&row->benchmark, times, "benchmark", unit, path, where, err);
    if (rc != 0) {
        return rc;
    }
    rc = tuner_read_times(row, json_object_get(times, "runtimes"), unit, path, where, err);
    if (rc != 0) {
        return rc;
    }
    return tuner_check_row(tuner, row, path, where, err);
}

int tuner_read_t4(struct tuner *tuner, const char *path, struct err *err)
{
    const json_t *results = json_object_get(tuner->root, "results");
    json_t *first = json_object_get(json_array_get(results, 0), "configuration");
    double unit = 1;

    tuner->format = "T4 results";
    int rc = tuner_read_unit(&unit, json_object_get(tuner->root, "metadata"), "timeunit", path,
                             NULL, err);
    if (rc != 0) {
        return rc;
    }
    const char *key;
    const json_t *value;
    json_object_foreach (first, key, value) {
        rc = tuner_add_param(tuner, key, path, err);
        if (rc != 0) {
            return rc;
        }
    }
    rc = tuner_make_rows(tuner, json_array_size(results), path, err);
    for (size_t i = 0; i < json_array_size(results) && rc == 0; i++) {
        rc = read_result(tuner, json_array_get(results, i), unit, path, err);
    }
    return rc;
}
