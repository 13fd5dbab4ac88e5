// Reads Kernel Tuner's files: the cache that it appends to while it tunes, and by
// import_tuner_t4.c T4 results.
//
// Design. A cache file is JSON that is only closed when tuning ends. Until then its last two braces
// are missing, and a comma may stand there (store_cache and correct_open_cache in
// kernel_tuner/util.py). When the tuner is killed, the last line may be incomplete. Python writes
// NaN and Infinity, which JSON does not have. So the text is first made strict, then closed, then
// parsed.
#include "client/space/import_tuner.h"
#include "client/space/space.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_TIME 1e20 // old versions write this time when a configuration could not be measured

// ---- text to JSON ----

// Copies JSON with Python's NaN, Infinity and -Infinity replaced by null.
static void add_strict(struct strbuf *out, const char *text, size_t len)
{
    static const char *const word[] = {"NaN", "Infinity", "-Infinity"};
    bool quoted = false;

    for (size_t i = 0; i < len; i++) {
        size_t skip = 0;
        for (size_t w = 0; w < ARRAY_LEN(word) && !quoted; w++) {
            size_t size = strlen(word[w]);
            if (len - i >= size && memcmp(text + i, word[w], size) == 0) {
                skip = size;
            }
        }
        if (skip > 0) {
            strbuf_adds(out, "null");
            i += skip - 1;
            continue;
        }
        if (quoted && text[i] == '\\' && i + 1 < len) {
            strbuf_addc(out, text[i++]);
        } else if (text[i] == '"') {
            quoted = !quoted;
        }
        strbuf_addc(out, text[i]);
    }
}

static size_t without_end(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", text[len - 1])) {
        len--;
    }
    return len > 0 && text[len - 1] == ',' ? len - 1 : len;
}

// Parses JSON like json_loadb(), but closes what is open: first the whole text, then the text
// without its incomplete last line. NULL on failure; then *why is the error in the whole text.
static json_t *load(const char *text, size_t len, json_error_t *why)
{
    json_t *ret = json_loadb(text, len, 0, why);

    for (int attempt = 0; attempt < 2 && !ret; attempt++) {
        struct strbuf closed;
        strbuf_init(&closed, len + 16);
        len = without_end(text, len);
        strbuf_add(&closed, text, len);
        strbuf_adds(&closed, "}\n}");
        json_error_t other;
        ret = json_loadb(closed.data, closed.len, 0, &other);
        strbuf_release(&closed);
        const char *newline = memrchr(text, '\n', len);
        len = newline ? (size_t)(newline - text) : 0;
    }
    return ret;
}

// ---- the cache file ----

// Reads the error of a configuration. It is the name of one of Kernel Tuner's error classes, as the
// value of any key ("__error__" since version 1.0).
static void read_error(struct tuner_row *row, const json_t *object)
{
    static const struct {
        const char *name;
        enum verdict verdict;
    } known[] = {{"CompilationFailedConfig", VERDICT_COMPILE_ERROR},
                 {"InvalidConfig", VERDICT_COMPILE_ERROR},
                 {"RuntimeFailedConfig", VERDICT_CRASH},
                 {"ErrorConfig", VERDICT_CRASH}};
    const char *key;
    const json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        const char *text = json_string_value(value);
        for (size_t i = 0; i < ARRAY_LEN(known) && text; i++) {
            if (strcmp(text, known[i].name) == 0) {
                row->verdict = known[i].verdict;
                row->reason = known[i].name;
            }
        }
    }
    value = json_object_get(object, "__error__");
    if (row->verdict == VERDICT_NONE && value && !json_is_null(value)) {
        row->verdict = VERDICT_CRASH;
        row->reason = "an error of a kind that is not known";
    }
    if (row->verdict == VERDICT_NONE &&
        json_number_value(json_object_get(object, "time")) >= NO_TIME) {
        row->verdict = VERDICT_CRASH;
        row->reason = "not measured";
    }
}

static int read_entry(struct tuner *tuner, const char *key, const json_t *object, const char *path,
                      struct err *err)
{
    struct tuner_row *row = &tuner->row[tuner->row_count++];

    *row = (struct tuner_row){.config = object, .time = NAN};
    if (!json_is_object(object)) {
        return err_set(err, ERR_INVALID, "%s: configuration %.200s is no object", path, key);
    }
    read_error(row, object);
    int rc = 0;
    if (row->verdict == VERDICT_NONE) {
        rc = tuner_read_ms(&row->time, object, "time", 1, path, key, err);
    }
    if (rc != 0) {
        return rc;
    }
    rc = tuner_read_ms(&row->compile, object, "compile_time", 1, path, key, err);
    if (rc != 0) {
        return rc;
    }
    rc = tuner_read_ms(&row->verify, object, "verification_time", 1, path, key, err);
    if (rc != 0) {
        return rc;
    }
    rc = tuner_read_ms(&row->benchmark, object, "benchmark_time", 1, path, key, err);
    if (rc != 0) {
        return rc;
    }
    rc = tuner_read_times(row, json_object_get(object, "times"), 1, path, key, err);
    if (rc != 0) {
        return rc;
    }
    return tuner_check_row(tuner, row, path, key, err);
}

// The device name is empty when Kernel Tuner uses the backend that compiles C.
static const char *name_of(const struct tuner *tuner, const char *field)
{
    const char *text = json_string_value(json_object_get(tuner->root, field));

    return text && text[0] != '\0' ? text : NULL;
}

static int read_cache(struct tuner *tuner, const char *path, struct err *err)
{
    const json_t *keys = json_object_get(tuner->root, "tune_params_keys");
    const json_t *lists = json_object_get(tuner->root, "tune_params");
    json_t *cache = json_object_get(tuner->root, "cache");

    tuner->format = "cache";
    tuner->device = name_of(tuner, "device_name");
    tuner->kernel = name_of(tuner, "kernel_name");
    tuner->problem_size = json_object_get(tuner->root, "problem_size");
    if (!json_is_object(cache) || !json_is_array(keys)) {
        return err_set(err, ERR_INVALID, "%s: its \"cache\" is no object or its %s", path,
                       "\"tune_params_keys\" are no list");
    }
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const char *name = json_string_value(json_array_get(keys, i));
        if (!name) {
            return err_set(err, ERR_INVALID,
                           "%s: \"tune_params_keys\" has something that is no text", path);
        }
        int rc = tuner_add_param(tuner, name, path, err);
        if (rc != 0) {
            return rc;
        }
        tuner->param[i].listed = json_object_get(lists, name);
    }
    int rc = tuner_make_rows(tuner, json_object_size(cache), path, err);
    if (rc != 0) {
        return rc;
    }
    const char *key;
    json_t *value;
    json_object_foreach (cache, key, value) {
        rc = read_entry(tuner, key, value, path, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

// ---- both formats ----

int tuner_read(struct tuner *ret, const void *data, size_t len, const char *path, struct err *err)
{
    struct strbuf text;

    strbuf_init(&text, 2 * len + 16); // replacing "NaN" by "null" adds one byte
    add_strict(&text, data, len);
    struct tuner tuner = {.tool = "Kernel Tuner", .time_field = "time"};
    json_error_t why = {.line = 0};
    tuner.root = load(strbuf_text(&text), text.len, &why);
    strbuf_release(&text);
    int rc;
    if (!tuner.root) {
        rc = err_set(err, ERR_INVALID, "%s:%d: no JSON of Kernel Tuner: %.200s", path, why.line,
                     why.text);
    } else if (json_object_get(tuner.root, "cache")) {
        rc = read_cache(&tuner, path, err);
    } else if (json_is_array(json_object_get(tuner.root, "results"))) {
        rc = tuner_read_t4(&tuner, path, err);
    } else if (json_object_get(tuner.root, "Results")) {
        rc =
            err_set(err, ERR_INVALID,
                    "%s: results of KTT, not of Kernel Tuner; `kcast import ktt` reads them", path);
    } else {
        rc = err_set(err, ERR_INVALID,
                     "%s: neither a cache file of Kernel Tuner (with \"cache\") nor T4 results "
                     "(with a list \"results\")",
                     path);
    }
    if (rc != 0) {
        tuner_release(&tuner);
        return rc;
    }
    *ret = tuner;
    return 0;
}

void tuner_release(struct tuner *tuner)
{
    for (size_t i = 0; i < tuner->row_count; i++) {
        free(tuner->row[i].times);
    }
    free(tuner->row);
    json_decref(tuner->root);
    *tuner = (struct tuner){.root = NULL};
}
