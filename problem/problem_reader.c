#include "problem/problem_reader.h"
#include "common/mem.h"
#include "common/printable.h"
#include "problem/identifier.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct json_path json_path_below(const struct json_path *parent, const char *format, ...)
{
    struct json_path where = *parent;
    size_t len = strlen(where.text);
    va_list args;
    va_start(args, format);
    vsnprintf(where.text + len, sizeof where.text - len, format, args);
    va_end(args);
    return where;
}

int reader_fail(const struct reader *reader, const struct json_path *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[600];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return err_set(reader->err, ERR_INVALID, "%s: %s: %s", reader->path, where->text, text);
}

struct quoted reader_quote(const char *text)
{
    struct quoted out = {""};
    size_t len = strnlen(text, 61), kept = len;
    if (len > 60) {
        for (kept = 57; kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80; kept--) {
            ; // go back to where a UTF-8 sequence begins
        }
        memcpy(out.text + kept, "...", 3);
    }
    memcpy(out.text, text, kept);
    for (char *c = out.text; (c = strpbrk(c, "\n\t"));) {
        *c = '?';
    }
    printable_clean(out.text, strlen(out.text));
    return out;
}

// The index of text in the names, their number when it is not among them.
static size_t choice_of(const char *text, const char *const *names, size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(text, names[i]) != 0) {
        i++;
    }
    return i;
}

// Appends "a, b or c".
static void list_names(struct strbuf *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(out, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", names[i]);
    }
}

// Reports a text that is not among the names. `what` precedes it in the sentence.
static int fail_choice(const struct reader *reader, const struct json_path *where, const char *what,
                       const char *given, const char *const *names, size_t count)
{
    struct strbuf known;
    strbuf_init(&known, 400);
    list_names(&known, names, count);
    int rc = count == 0 ? reader_fail(reader, where, "%s\"%s\" is not known; nothing belongs here",
                                      what, reader_quote(given).text)
                        : reader_fail(reader, where, "%s\"%s\" is not known; use %s", what,
                                      reader_quote(given).text, strbuf_text(&known));
    strbuf_release(&known);
    return rc;
}

int reader_check_keys(const struct reader *reader, const struct json_path *where, json_t *object,
                      const char *const *keys, size_t count)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach (object, key, value) {
        if (choice_of(key, keys, count) == count) {
            return fail_choice(reader, where, "the key ", key, keys, count);
        }
    }
    return 0;
}

int reader_check_kind(const struct reader *reader, const struct json_path *where,
                      const json_t *value, enum json_kind kind)
{
    static const char *const names[] = {"an object", "a list", "a text", "an integer", "a number"};
    static const char *const types[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "a list",       [JSON_STRING] = "a text",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a real number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null"};
    bool fits = kind == KIND_OBJECT    ? json_is_object(value)
                : kind == KIND_LIST    ? json_is_array(value)
                : kind == KIND_TEXT    ? json_is_string(value)
                : kind == KIND_INTEGER ? json_is_integer(value)
                                       : json_is_number(value);
    return fits ? 0
                : reader_fail(reader, where, "%s is expected, not %s", names[kind],
                              types[json_typeof(value)]);
}

int reader_get(const struct reader *reader, const struct json_path *where, const json_t *object,
               const char *key, enum json_kind kind, json_t **ret, struct json_path *ret_where)
{
    json_t *value = json_object_get(object, key);
    if (!value) {
        return reader_fail(reader, where, "the key \"%s\" is missing; add it", key);
    }
    *ret_where = json_path_below(where, ".%s", key);
    int rc = reader_check_kind(reader, ret_where, value, kind);
    if (rc == 0) {
        *ret = value;
    }
    return rc;
}

int reader_get_list(const struct reader *reader, const struct json_path *where,
                    const json_t *object, const char *key, size_t min, size_t max, json_t **ret,
                    struct json_path *ret_where)
{
    json_t *list = NULL;
    int rc = reader_get(reader, where, object, key, KIND_LIST, &list, ret_where);
    if (rc != 0) {
        return rc;
    }
    if (json_array_size(list) < min || json_array_size(list) > max) {
        return reader_fail(reader, ret_where, "%zu to %zu entries are expected, not %zu", min, max,
                           json_array_size(list));
    }
    *ret = list;
    return 0;
}

int reader_get_number(const struct reader *reader, const struct json_path *where,
                      const json_t *object, const char *key, double min, double max, double *ret)
{
    json_t *value = NULL;
    struct json_path here;
    int rc = reader_get(reader, where, object, key, KIND_NUMBER, &value, &here);
    if (rc != 0) {
        return rc;
    }
    double number = json_number_value(value);
    if (!(number >= min && number <= max)) {
        return reader_fail(reader, &here, "%.17g is outside its range, %.17g to %.17g", number, min,
                           max);
    }
    *ret = number;
    return 0;
}

int reader_get_integer(const struct reader *reader, const struct json_path *where,
                       const json_t *object, const char *key, int64_t min, int64_t max,
                       int64_t *ret)
{
    json_t *value = NULL;
    struct json_path here;
    int rc = reader_get(reader, where, object, key, KIND_INTEGER, &value, &here);
    if (rc != 0) {
        return rc;
    }
    int64_t number = json_integer_value(value);
    if (number < min || number > max) {
        return reader_fail(reader, &here, "%lld is outside its range, %lld to %lld",
                           (long long)number, (long long)min, (long long)max);
    }
    *ret = number;
    return 0;
}

int reader_get_choice(const struct reader *reader, const struct json_path *where,
                      const json_t *object, const char *key, const char *const *names, size_t count,
                      size_t *ret)
{
    json_t *value = NULL;
    struct json_path here;
    int rc = reader_get(reader, where, object, key, KIND_TEXT, &value, &here);
    if (rc != 0) {
        return rc;
    }
    size_t choice = choice_of(json_string_value(value), names, count);
    if (choice == count) {
        return fail_choice(reader, &here, "", json_string_value(value), names, count);
    }
    *ret = choice;
    return 0;
}

int reader_get_text(const struct reader *reader, const struct json_path *where,
                    const json_t *object, const char *key, size_t max, const char *allowed,
                    char **ret)
{
    json_t *value = NULL;
    struct json_path here;
    int rc = reader_get(reader, where, object, key, KIND_TEXT, &value, &here);
    if (rc != 0) {
        return rc;
    }
    const char *text = json_string_value(value);
    size_t len = strlen(text);
    if (len < 1 || len > max) {
        return reader_fail(reader, &here, "1 to %zu bytes are expected, not %zu", max, len);
    }
    if (printable_check(key, text, NULL) != 0) {
        return reader_fail(reader, &here, "one line without control characters is expected");
    }
    if (allowed && text[strspn(text, allowed)] != '\0') {
        return reader_fail(reader, &here, "\"%s\" holds a character other than %s",
                           reader_quote(text).text, allowed);
    }
    *ret = xstrdup(text);
    return 0;
}

int reader_get_identifier(const struct reader *reader, const struct json_path *where,
                          const json_t *object, const char *key, char **ret)
{
    json_t *value = NULL;
    struct json_path here;
    int rc = reader_get(reader, where, object, key, KIND_TEXT, &value, &here);
    if (rc != 0) {
        return rc;
    }
    const char *refusal = identifier_refusal(json_string_value(value));
    if (refusal) {
        return reader_fail(reader, &here, "the name \"%s\" %s; choose another",
                           reader_quote(json_string_value(value)).text, refusal);
    }
    *ret = xstrdup(json_string_value(value));
    return 0;
}

int reader_expr(const struct reader *reader, const struct json_path *where, const json_t *value,
                struct expr **ret)
{
    int rc = reader_check_kind(reader, where, value, KIND_TEXT);
    if (rc != 0) {
        return rc;
    }
    struct err inner = ERR_INIT;
    if (expr_parse(ret, json_string_value(value), EXPR_ARITHMETIC, reader->int_name,
                   reader->problem->param_count, &inner) != 0) {
        return reader_fail(reader, where, "%s", inner.text);
    }
    return 0;
}

int reader_check_object(const struct reader *reader, const struct json_path *where, json_t *value,
                        const char *const *keys, size_t count)
{
    int rc = reader_check_kind(reader, where, value, KIND_OBJECT);
    return rc != 0 ? rc : reader_check_keys(reader, where, value, keys, count);
}
