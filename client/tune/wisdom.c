// Design note. An entry keeps the JSON object that it was read from and adds what lookups and
// merges need. So a file that is read and written again keeps everything that it had, including
// keys of later releases. What is printed for a shell, the names of parameters and the line of -D
// options, is checked and made again from the numbers, because a wisdom file may come from
// elsewhere.
#include "client/tune/wisdom.h"

#include "common/digest.h"
#include "common/mem.h"
#include "common/printable.h"
#include "problem/identifier.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1024 // bytes of a text that is looked at

// The place of an entry in the file, for sentences.
struct place {
    const char *path, *what; // of the file; of the entry, such as "$.entries[3]"
    struct err *err;
};

static int fail(const struct place *place, const char *key, const char *wanted)
{
    return err_set(place->err, ERR_CORRUPT,
                   "%.300s: %.60s%s%.60s: %s; mend it, or move the file away and tune again",
                   place->path, place->what, key[0] != '\0' ? "." : "", key, wanted);
}

// Gets one line of text. *ret belongs to object; it is "" for null where null is allowed.
static int get_text(const struct place *place, const json_t *object, const char *key,
                    bool may_be_null, const char **ret)
{
    const json_t *value = json_object_get(object, key);
    if (may_be_null && json_is_null(value)) {
        *ret = "";
        return 0;
    }
    const char *text = json_string_value(value);
    size_t len = json_string_length(value);
    if (!text || len == 0 || len > TEXT_MAX || strlen(text) != len) {
        return fail(place, key, "a text is expected");
    }
    if (printable_check(key, text, NULL) != 0) {
        return fail(place, key, "one line without control characters is expected");
    }
    *ret = text;
    return 0;
}

static int get_digest(const struct place *place, const json_t *object, const char *key,
                      const char **ret)
{
    struct digest digest;
    int rc = get_text(place, object, key, false, ret);
    if (rc == 0 && digest_parse(&digest, *ret, NULL) != 0) {
        rc = fail(place, key, "64 hex digits are expected");
    }
    return rc;
}

// Gets a time such as "2026-11-21T19:44:39Z".
static int get_time(const struct place *place, const json_t *object, const char *key,
                    const char **ret)
{
    static const char form[] = "0000-00-00T00:00:00Z";
    int rc = get_text(place, object, key, false, ret);
    if (rc != 0) {
        return rc;
    }
    bool good = strlen(*ret) == sizeof(form) - 1;
    for (size_t i = 0; good && form[i] != '\0'; i++) {
        char c = (*ret)[i];
        good = form[i] == '0' ? c >= '0' && c <= '9' : c == form[i];
    }
    return good ? 0 : fail(place, key, "a time like 2026-01-31T12:00:00Z is expected");
}

static int read_case(struct wisdom_case *ret, const struct place *place, const json_t *object)
{
    json_t *params = json_object_get(object, "params"), *value = NULL;
    const char *name = NULL;
    if (!json_is_object(params) || json_object_size(params) > WISDOM_PARAM_MAX) {
        return fail(place, "cases", "each has an object \"params\" of at most 32 numbers");
    }
    json_object_foreach (params, name, value) {
        if (!json_is_number(value) || identifier_refusal(name)) {
            return fail(place, "cases", "parameters are names with numbers");
        }
        ret->param[ret->count++] = (struct wisdom_value){
            .name = name,
            .integer = json_is_integer(value),
            .whole = json_integer_value(value),
            .real = json_number_value(value),
        };
    }
    return 0;
}

static int read_cases(struct wisdom_entry *entry, const struct place *place)
{
    json_t *list = json_object_get(entry->object, "cases");
    size_t count = json_array_size(list);
    if (count < 1 || count > WISDOM_CASE_MAX) {
        return fail(place, "cases", "a list of 1 to 32 cases is expected");
    }
    entry->shape = xcalloc(count, sizeof(*entry->shape));
    entry->shape_count = count;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = read_case(&entry->shape[i], place, json_array_get(list, i));
    }
    return rc;
}

static int read_configuration(struct wisdom_entry *entry, const struct place *place)
{
    json_t *params = json_object_get(entry->object, "params"), *value = NULL;
    const json_t *define = json_object_get(entry->object, "define");
    if (json_is_null(params) && json_is_null(define)) {
        return 0;
    }
    if (json_object_size(params) < 1 || json_object_size(params) > WISDOM_PARAM_MAX) {
        return fail(place, "params", "1 to 32 names with integers, or null, are expected");
    }
    struct strbuf line;
    strbuf_init(&line, 8192);
    const char *name = NULL;
    int rc = 0;
    json_object_foreach (params, name, value) {
        if (!json_is_integer(value) || identifier_refusal(name)) {
            rc = fail(place, "params", "1 to 32 names with integers, or null, are expected");
            break;
        }
        strbuf_addf(&line, "%s-D%s=%" PRId64, line.len > 0 ? " " : "", name,
                    (int64_t)json_integer_value(value));
    }
    if (rc == 0 &&
        (!json_is_string(define) || strcmp(json_string_value(define), strbuf_text(&line)) != 0)) {
        rc = fail(place, "define", "it does not say what \"params\" says");
    }
    if (rc == 0) {
        entry->configured = true;
        entry->define = strbuf_detach(&line);
    }
    strbuf_release(&line);
    return rc;
}

// Fills in the entry from its object.
static int read_object(struct wisdom_entry *e, const struct place *place)
{
    const json_t *object = e->object;
    if (!json_is_object(object)) {
        return fail(place, "", "an object is expected");
    }
    const struct {
        const char *key, **target;
    } digests[] = {{"problem_digest", &e->problem_digest},
                   {"reference_digest", &e->reference_digest},
                   {"baseline_digest", &e->baseline_digest},
                   {"kernel_digest", &e->kernel_digest}};
    const struct {
        const char *key, **target;
        bool may_be_null;
    } texts[] = {{"problem", &e->problem, false},
                 {"kernel", &e->kernel, false},
                 {"device_class", &e->device_class, false},
                 {"toolchain", &e->toolchain, true}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(texts); i++) {
        rc = get_text(place, object, texts[i].key, texts[i].may_be_null, texts[i].target);
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(digests); i++) {
        rc = get_digest(place, object, digests[i].key, digests[i].target);
    }
    if (rc != 0) {
        return rc;
    }
    rc = get_time(place, object, "tuned_at", &e->tuned_at);
    if (rc != 0) {
        return rc;
    }
    const json_t *log2 = json_object_get(object, "log2_speedup");
    if (!json_is_number(log2) || !isfinite(json_number_value(log2))) {
        return fail(place, "log2_speedup", "a number is expected");
    }
    e->log2 = json_number_value(log2);
    rc = read_configuration(e, place);
    return rc == 0 ? read_cases(e, place) : rc;
}

int wisdom_entry_read(struct wisdom_entry **ret, json_t *object, const char *path, const char *what,
                      struct err *err)
{
    const struct place place = {path, what, err};
    struct wisdom_entry *entry = xcalloc(1, sizeof(*entry));
    entry->object = json_incref(object);
    int rc = read_object(entry, &place);
    if (rc == 0) {
        *ret = entry;
    } else {
        wisdom_entry_free(entry);
    }
    return rc;
}

void wisdom_entry_free(struct wisdom_entry *entry)
{
    if (entry) {
        json_decref(entry->object);
        free(entry->define);
        free(entry->shape);
        free(entry);
    }
}

// ---- entries with the same key ----

static bool same_value(const struct wisdom_value *a, const struct wisdom_value *b)
{
    return a->integer == b->integer && strcmp(a->name, b->name) == 0 &&
           (a->integer ? a->whole == b->whole : !(a->real < b->real || a->real > b->real));
}

static bool same_case(const struct wisdom_case *a, const struct wisdom_case *b)
{
    size_t found = 0;
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = 0; j < b->count; j++) {
            found += same_value(&a->param[i], &b->param[j]);
        }
    }
    return a->count == b->count && found == a->count;
}

static bool has_all_cases(const struct wisdom_entry *a, const struct wisdom_entry *b)
{
    bool all = true;
    for (size_t i = 0; all && i < b->shape_count; i++) {
        bool found = false;
        for (size_t j = 0; !found && j < a->shape_count; j++) {
            found = same_case(&a->shape[j], &b->shape[i]);
        }
        all = found;
    }
    return all;
}

bool wisdom_same(const struct wisdom_entry *a, const struct wisdom_entry *b)
{
    return strcmp(a->kernel_digest, b->kernel_digest) == 0 && strcmp(a->problem, b->problem) == 0 &&
           strcmp(a->problem_digest, b->problem_digest) == 0 &&
           strcmp(a->reference_digest, b->reference_digest) == 0 &&
           strcmp(a->baseline_digest, b->baseline_digest) == 0 &&
           strcmp(a->device_class, b->device_class) == 0 && has_all_cases(a, b) &&
           has_all_cases(b, a);
}

static size_t index_of(const struct wisdom *wisdom, const struct wisdom_entry *like)
{
    size_t i = 0;
    while (i < wisdom->count && !wisdom_same(wisdom->entry[i], like)) {
        i++;
    }
    return i;
}

const struct wisdom_entry *wisdom_find(const struct wisdom *wisdom, const struct wisdom_entry *like)
{
    size_t i = index_of(wisdom, like);
    return i < wisdom->count ? wisdom->entry[i] : NULL;
}

static void append(struct wisdom *wisdom, struct wisdom_entry *entry)
{
    wisdom->entry = xrealloc(wisdom->entry, wisdom->count + 1, sizeof(struct wisdom_entry *));
    wisdom->entry[wisdom->count++] = entry;
}

void wisdom_put_take(struct wisdom *wisdom, struct wisdom_entry *entry, bool *ret_kept)
{
    size_t i = index_of(wisdom, entry);
    *ret_kept = false;
    if (i == wisdom->count) {
        append(wisdom, entry);
        return;
    }
    struct wisdom_entry *old = wisdom->entry[i];
    *ret_kept = strcmp(old->toolchain, entry->toolchain) == 0 && old->log2 > entry->log2;
    wisdom_entry_free(*ret_kept ? entry : old);
    wisdom->entry[i] = *ret_kept ? old : entry;
}

// ---- the whole file ----

static int check_head(const json_t *root, const char *path, struct err *err)
{
    const struct place place = {path, "$", err};
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *version = json_object_get(root, "version");
    if (!format || strcmp(format, WISDOM_FORMAT) != 0) {
        return fail(&place, "format", "it is not \"" WISDOM_FORMAT "\", so this is no wisdom file");
    }
    if (!json_is_integer(version) || json_integer_value(version) < 1) {
        return fail(&place, "version", "an integer is expected");
    }
    if (json_integer_value(version) != WISDOM_VERSION) {
        return err_set(err, ERR_VERSION,
                       "%.300s: it is a wisdom file of version %lld and this release knows "
                       "version %d; name another file",
                       path, (long long)json_integer_value(version), WISDOM_VERSION);
    }
    if (json_object_size(root) != 3 || !json_is_array(json_object_get(root, "entries"))) {
        return fail(&place, "", "\"format\", \"version\" and the list \"entries\" are expected");
    }
    if (json_array_size(json_object_get(root, "entries")) > WISDOM_ENTRY_MAX) {
        return err_set(err, ERR_LIMIT, "%.300s: it has more than %d entries; begin another file",
                       path, WISDOM_ENTRY_MAX);
    }
    return 0;
}

static int read_entries(struct wisdom *wisdom, const json_t *list, const char *path,
                        struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        char what[40];
        snprintf(what, sizeof(what), "$.entries[%zu]", i);
        struct wisdom_entry *entry = NULL;
        rc = wisdom_entry_read(&entry, json_array_get(list, i), path, what, err);
        if (rc == 0 && wisdom_find(wisdom, entry)) {
            const struct place place = {path, what, err};
            rc = fail(&place, "", "an earlier entry is for the same thing");
        }
        if (rc == 0) {
            append(wisdom, entry);
        } else {
            wisdom_entry_free(entry);
        }
    }
    return rc;
}

int wisdom_parse(struct wisdom *ret, const char *text, size_t len, const char *path,
                 struct err *err)
{
    json_error_t why;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    *ret = (struct wisdom){0};
    if (!root) {
        return err_set(err, ERR_CORRUPT,
                       "%.300s: line %d, column %d: it is no JSON, so the file is damaged; mend "
                       "it, or move it away and tune again",
                       path, why.line, why.column);
    }
    int rc = check_head(root, path, err);
    if (rc == 0) {
        rc = read_entries(ret, json_object_get(root, "entries"), path, err);
    }
    if (rc != 0) {
        wisdom_release(ret);
    }
    json_decref(root);
    return rc;
}

void wisdom_release(struct wisdom *wisdom)
{
    for (size_t i = 0; i < wisdom->count; i++) {
        wisdom_entry_free(wisdom->entry[i]);
    }
    free(wisdom->entry);
    *wisdom = (struct wisdom){0};
}

void wisdom_text(const struct wisdom *wisdom, struct strbuf *out)
{
    json_t *list = json_array();
    for (size_t i = 0; i < wisdom->count; i++) {
        json_array_append(list, wisdom->entry[i]->object);
    }
    json_t *root = json_pack("{s:s, s:i, s:o}", "format", WISDOM_FORMAT, "version", WISDOM_VERSION,
                             "entries", list);
    char *text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    strbuf_adds(out, text);
    strbuf_addc(out, '\n');
    free(text);
    json_decref(root);
}
