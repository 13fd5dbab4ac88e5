// Reads KTT's results, as it saves them in JSON.
//
// Design. KTT runs a configuration once. TotalDuration is the time of its kernels and of the host
// code that launched them, which is what KTT minimises. TotalOverhead is the time of all else that
// KTT did for the configuration while it had the device: compiling, moving data, runs that count
// events, validating, choosing the configuration. Releases differ in which parts they also tell one
// by one; compiling is told since 2.2. What is told is taken out, and the rest is what the
// measurement has cost.
#include "client/space/import_tuner.h"
#include "common/mem.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WHERE_MAX 32 // bytes of a result's number

// ---- one result ----

// Puts an object from parameter to value in the place of the result's list of pairs.
static int read_configuration(json_t *result, const char *path, const char *where, struct err *err)
{
    const json_t *pairs = json_object_get(result, "Configuration");
    json_t *config = json_object();
    bool good = json_is_object(result) && json_is_array(pairs);

    for (size_t i = 0; i < json_array_size(pairs) && good; i++) {
        const json_t *pair = json_array_get(pairs, i);
        const char *name = json_string_value(json_object_get(pair, "Name"));
        json_t *value = json_object_get(pair, "Value");
        good = name && value && json_object_set(config, name, value) == 0;
    }
    if (!good) {
        json_decref(config);
        return err_set(err, ERR_INVALID,
                       "%s: configuration %s: its \"Configuration\" is no list of objects with "
                       "\"Name\" and \"Value\"",
                       path, where);
    }
    (void)json_object_set_new(result, "Configuration", config);
    return 0;
}

static int read_status(struct tuner_row *row, const json_t *result, const char *path,
                       const char *where, struct err *err)
{
    static const struct tuner_word known[] = {{"Ok", VERDICT_NONE},
                                              {"ValidationFailed", VERDICT_WRONG},
                                              {"ComputationFailed", VERDICT_CRASH},
                                              {"CompilationFailed", VERDICT_COMPILE_ERROR},
                                              {"DeviceLimitsExceeded", VERDICT_COMPILE_ERROR}};
    const char *text = json_string_value(json_object_get(result, "Status"));

    if (tuner_read_verdict(row, known, ARRAY_LEN(known), text)) {
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "%s: configuration %s: its \"Status\" is \"%.64s\", which is none of KTT's",
                   path, where, text ? text : "");
}

static double known_or_0(double ms)
{
    return isnan(ms) ? 0 : ms;
}

static int read_costs(struct tuner_row *row, const json_t *result, double unit, const char *path,
                      const char *where, struct err *err)
{
    double duration, overhead, search;
    const struct {
        const char *field;
        double *ms;
    } part[] = {{"TotalDuration", &duration},
                {"TotalOverhead", &overhead},
                {"SearcherOverhead", &search},
                {"ValidationOverhead", &row->verify},
                {"CompilationOverhead", &row->compile}};

    for (size_t i = 0; i < ARRAY_LEN(part); i++) {
        int rc = tuner_read_ms(part[i].ms, result, part[i].field, unit, path, where, err);
        if (rc != 0) {
            return rc;
        }
    }
    double rest =
        fmax(0, overhead - known_or_0(search) - known_or_0(row->verify) - known_or_0(row->compile));
    row->time = row->verdict == VERDICT_NONE ? duration : NAN;
    row->benchmark = isnan(overhead) ? NAN : rest + known_or_0(duration);
    if (row->verdict == VERDICT_COMPILE_ERROR && !isnan(overhead)) {
        row->compile = rest + known_or_0(row->compile);
    }
    return 0;
}

// The kernel is the same one in all results of a file.
static int read_kernel(struct tuner *tuner, const json_t *result, const char *path,
                       const char *where, struct err *err)
{
    const char *name = json_string_value(json_object_get(result, "KernelName"));

    if (tuner->row_count == 1) {
        tuner->kernel = name;
    }
    if (name == tuner->kernel || (name && tuner->kernel && strcmp(name, tuner->kernel) == 0)) {
        return 0;
    }
    return err_set(err, ERR_INVALID,
                   "%s: configuration %s is of kernel \"%.64s\", the first one of \"%.64s\"; a "
                   "space has one kernel, so save their results in files of their own",
                   path, where, name ? name : "", tuner->kernel ? tuner->kernel : "");
}

static int read_result(struct tuner *tuner, const json_t *result, double unit, const char *path,
                       struct err *err)
{
    struct tuner_row *row = &tuner->row[tuner->row_count++];
    char where[WHERE_MAX];

    *row = (struct tuner_row){.config = json_object_get(result, "Configuration")};
    snprintf(where, sizeof(where), "%zu", tuner->row_count);
    int rc = read_status(row, result, path, where, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_kernel(tuner, result, path, where, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_costs(row, result, unit, path, where, err);
    if (rc != 0) {
        return rc;
    }
    return tuner_check_row(tuner, row, path, where, err);
}

// ---- the file ----

static int read_configurations(struct tuner *tuner, json_t *results, const char *path,
                               struct err *err)
{
    for (size_t i = 0; i < json_array_size(results); i++) {
        char where[WHERE_MAX];
        snprintf(where, sizeof(where), "%zu", i + 1);
        int rc = read_configuration(json_array_get(results, i), path, where, err);
        if (rc != 0) {
            return rc;
        }
    }
    json_t *first = json_object_get(json_array_get(results, 0), "Configuration");
    const char *name;
    const json_t *value;
    json_object_foreach (first, name, value) {
        int rc = tuner_add_param(tuner, name, path, err);
        if (rc != 0) {
            return rc;
        }
    }
    return tuner_make_rows(tuner, json_array_size(results), path, err);
}

static int read_results(struct tuner *tuner, const char *path, struct err *err)
{
    const json_t *metadata = json_object_get(tuner->root, "Metadata");
    json_t *results = json_object_get(tuner->root, "Results");
    double unit = 0;

    if (!json_is_object(metadata) || !json_is_array(results)) {
        return err_set(err, ERR_INVALID,
                       "%s: no results of KTT (with an object \"Metadata\" and a list \"Results\")",
                       path);
    }
    int rc = tuner_read_unit(&unit, metadata, "TimeUnit", path, NULL, err);
    if (rc == 0 && unit == 0) {
        rc = err_set(err, ERR_INVALID, "%s: its \"Metadata\" have no \"TimeUnit\"", path);
    }
    if (rc != 0) {
        return rc;
    }
    const char *device = json_string_value(json_object_get(metadata, "Device"));
    tuner->device = device && device[0] != '\0' ? device : NULL;
    rc = read_configurations(tuner, results, path, err);
    for (size_t i = 0; i < json_array_size(results) && rc == 0; i++) {
        rc = read_result(tuner, json_array_get(results, i), unit, path, err);
    }
    return rc;
}

int tuner_read_ktt(struct tuner *ret, const void *data, size_t len, const char *path,
                   struct err *err)
{
    struct tuner tuner = {.tool = "KTT", .format = "results", .time_field = "TotalDuration"};
    json_error_t why;

    tuner.root = json_loadb(data, len, 0, &why);
    int rc = tuner.root ? read_results(&tuner, path, err)
                        : err_set(err, ERR_INVALID, "%s:%d: no JSON of KTT: %.200s", path, why.line,
                                  why.text);
    if (rc != 0) {
        tuner_release(&tuner);
        return rc;
    }
    *ret = tuner;
    return 0;
}
