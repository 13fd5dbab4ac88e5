// Design note. This file turns the text of problem.json into a struct problem or into one sentence
// that names the file, the JSON path ("$.tensors[1].dtype") and what would be right. Nothing is
// guessed and nothing is ignored: every object is read by the list of its keys, so an unknown key,
// a missing one and a wrong type are errors at every level.
//
// Order matters in one place only: parameters are read before everything that holds expressions
// over them. An expression's names are indexed like problem.param, with an empty name in the place
// of each f64 parameter, so that shape_case.i can be handed to expr_eval as it is.
//
// Every listed case is evaluated here: a problem that was accepted has positive, bounded shapes and
// a floor of work for each of them. What follows from an accepted problem is in problem_shapes.c
// (numbers) and problem_code.c (C text).
//
// Limits: jansson bounds nesting (2048) and checks UTF-8; the rest are the constants in problem.h.
#include "problem/problem.h"
#include "common/mem.h"
#include "problem/identifier.h"
#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 200                    // bytes of title and license
#define HIDDEN_LIMIT ((int64_t)1 << 40) // magnitude of hidden ranges
#define EXACT_F32 16777216.0            // integers up to here are exact in f32
#define EXACT_F64 9007199254740992.0    // and in f64
#define C_DTYPES 5                      // of enum dtype
#define WEIGHT_MIN 1e-6
#define WEIGHT_MAX 1e6

struct reader {
    const char *path;                        // of the file, in errors
    struct problem *problem;                 // being built
    const char *int_name[PROBLEM_PARAM_MAX]; // names for expressions; "" for f64 parameters
    struct err *err;
};

// A JSON path.
struct where {
    char text[200];
};

static struct where below(const struct where *parent, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static struct where below(const struct where *parent, const char *format, ...)
{
    struct where where = *parent;
    size_t len = strlen(where.text);
    va_list args;
    va_start(args, format);
    vsnprintf(where.text + len, sizeof where.text - len, format, args);
    va_end(args);
    return where;
}

static int fail(const struct reader *reader, const struct where *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(const struct reader *reader, const struct where *where, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[600];
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return err_set(reader->err, ERR_INVALID, "%s: %s: %s", reader->path, where->text, text);
}

// At most 60 bytes of text from the file, fit to stand in an error sentence.
struct quoted {
    char text[64];
};

static struct quoted quote(const char *text)
{
    struct quoted out = {""};
    size_t len = strnlen(text, 61), kept = len;
    if (len > 60) {
        for (kept = 57; kept > 0 && ((unsigned char)text[kept] & 0xc0) == 0x80; kept--) {
            ; // not inside a UTF-8 sequence
        }
        memcpy(out.text + kept, "...", 3);
    }
    for (size_t i = 0; i < kept; i++) {
        out.text[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
    }
    return out;
}

// The index of text in the names, or their number.
static size_t choice_of(const char *text, const char *const *names, size_t count)
{
    size_t i = 0;
    while (i < count && strcmp(text, names[i]) != 0) {
        i++;
    }
    return i;
}

// "a, b or c"
static void list_names(struct strbuf *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(out, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", names[i]);
    }
}

static int fail_choice(const struct reader *reader, const struct where *where, const char *what,
                       const char *given, const char *const *names, size_t count)
{
    struct strbuf known;
    strbuf_init(&known, 400);
    list_names(&known, names, count);
    int rc = count == 0 ? fail(reader, where, "%s\"%s\" is not known; nothing belongs here", what,
                               quote(given).text)
                        : fail(reader, where, "%s\"%s\" is not known; use %s", what,
                               quote(given).text, strbuf_text(&known));
    strbuf_release(&known);
    return rc;
}

// Refuses keys other than these.
static int check_keys(const struct reader *reader, const struct where *where, json_t *object,
                      const char *const *keys, size_t count)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach (object, key, value)
        if (choice_of(key, keys, count) == count) {
            return fail_choice(reader, where, "the key ", key, keys, count);
        }
    return 0;
}

enum wanted { WANT_OBJECT, WANT_LIST, WANT_TEXT, WANT_INTEGER, WANT_NUMBER };

static int check_type(const struct reader *reader, const struct where *where, const json_t *value,
                      enum wanted wanted)
{
    static const char *const names[] = {"an object", "a list", "a text", "an integer", "a number"};
    static const char *const types[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "a list",       [JSON_STRING] = "a text",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a real number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null"};
    bool fits = wanted == WANT_OBJECT    ? json_is_object(value)
                : wanted == WANT_LIST    ? json_is_array(value)
                : wanted == WANT_TEXT    ? json_is_string(value)
                : wanted == WANT_INTEGER ? json_is_integer(value)
                                         : json_is_number(value);
    return fits ? 0
                : fail(reader, where, "%s is expected, not %s", names[wanted],
                       types[json_typeof(value)]);
}

// The member `key`, which must exist and be of this type. *ret_where becomes its path.
static int get(const struct reader *reader, const struct where *where, const json_t *object,
               const char *key, enum wanted wanted, json_t **ret, struct where *ret_where)
{
    json_t *value = json_object_get(object, key);
    if (!value) {
        return fail(reader, where, "the key \"%s\" is missing; add it", key);
    }
    *ret_where = below(where, ".%s", key);
    int rc = check_type(reader, ret_where, value, wanted);
    if (rc == 0) {
        *ret = value;
    }
    return rc;
}

static int get_list(const struct reader *reader, const struct where *where, const json_t *object,
                    const char *key, size_t min, size_t max, json_t **ret, struct where *ret_where)
{
    json_t *list = NULL;
    int rc = get(reader, where, object, key, WANT_LIST, &list, ret_where);
    if (rc != 0) {
        return rc;
    }
    if (json_array_size(list) < min || json_array_size(list) > max) {
        return fail(reader, ret_where, "%zu to %zu entries are expected, not %zu", min, max,
                    json_array_size(list));
    }
    *ret = list;
    return 0;
}

static int get_number(const struct reader *reader, const struct where *where, const json_t *object,
                      const char *key, double min, double max, double *ret)
{
    json_t *value = NULL;
    struct where here;
    int rc = get(reader, where, object, key, WANT_NUMBER, &value, &here);
    if (rc != 0) {
        return rc;
    }
    double number = json_number_value(value);
    if (!(number >= min && number <= max)) {
        return fail(reader, &here, "%.17g is outside its range, %.17g to %.17g", number, min, max);
    }
    *ret = number;
    return 0;
}

static int get_integer(const struct reader *reader, const struct where *where, const json_t *object,
                       const char *key, int64_t min, int64_t max, int64_t *ret)
{
    json_t *value = NULL;
    struct where here;
    int rc = get(reader, where, object, key, WANT_INTEGER, &value, &here);
    if (rc != 0) {
        return rc;
    }
    int64_t number = json_integer_value(value);
    if (number < min || number > max) {
        return fail(reader, &here, "%lld is outside its range, %lld to %lld", (long long)number,
                    (long long)min, (long long)max);
    }
    *ret = number;
    return 0;
}

static int get_choice(const struct reader *reader, const struct where *where, const json_t *object,
                      const char *key, const char *const *names, size_t count, size_t *ret)
{
    json_t *value = NULL;
    struct where here;
    int rc = get(reader, where, object, key, WANT_TEXT, &value, &here);
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

// One line of 1 to max bytes; of the given characters only, unless `allowed` is NULL.
static int get_text(const struct reader *reader, const struct where *where, const json_t *object,
                    const char *key, size_t max, const char *allowed, char **ret)
{
    json_t *value = NULL;
    struct where here;
    int rc = get(reader, where, object, key, WANT_TEXT, &value, &here);
    if (rc != 0) {
        return rc;
    }
    const char *text = json_string_value(value);
    size_t len = strlen(text);
    if (len < 1 || len > max) {
        return fail(reader, &here, "1 to %zu bytes are expected, not %zu", max, len);
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f) {
            return fail(reader, &here, "one line without control characters is expected");
        }
    }
    if (allowed && text[strspn(text, allowed)] != '\0') {
        return fail(reader, &here, "\"%s\" holds a character other than %s", quote(text).text,
                    allowed);
    }
    *ret = xstrdup(text);
    return 0;
}

static int get_identifier(const struct reader *reader, const struct where *where,
                          const json_t *object, const char *key, char **ret)
{
    json_t *value = NULL;
    struct where here;
    int rc = get(reader, where, object, key, WANT_TEXT, &value, &here);
    if (rc != 0) {
        return rc;
    }
    const char *refusal = identifier_refusal(json_string_value(value));
    if (refusal) {
        return fail(reader, &here, "the name \"%s\" %s; choose another",
                    quote(json_string_value(value)).text, refusal);
    }
    *ret = xstrdup(json_string_value(value));
    return 0;
}

static int read_expr(const struct reader *reader, const struct where *where, const json_t *value,
                     struct expr **ret)
{
    int rc = check_type(reader, where, value, WANT_TEXT);
    struct err inner = ERR_INIT;
    if (rc == 0 && expr_parse(ret, json_string_value(value), EXPR_ARITHMETIC, reader->int_name,
                              reader->problem->param_count, &inner) != 0) {
        rc = fail(reader, where, "%s", inner.text);
    }
    return rc;
}

static int read_params(struct reader *reader, const struct where *root, const json_t *object)
{
    static const char *const keys[] = {"name", "type"}, *const types[] = {"int", "f64"};
    struct problem *problem = reader->problem;
    json_t *list = NULL;
    struct where at;
    int rc = get_list(reader, root, object, "params", 0, PROBLEM_PARAM_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        json_t *entry = json_array_get(list, i);
        struct where here = below(&at, "[%zu]", i);
        struct param *param = &problem->param[problem->param_count++];
        rc = check_type(reader, &here, entry, WANT_OBJECT);
        if (rc == 0) {
            rc = check_keys(reader, &here, entry, keys, ARRAY_LEN(keys));
        }
        if (rc == 0) {
            rc = get_identifier(reader, &here, entry, "name", &param->name);
        }
        size_t type = 0;
        if (rc == 0) {
            rc = get_choice(reader, &here, entry, "type", types, ARRAY_LEN(types), &type);
        }
        for (size_t j = 0; rc == 0 && j < i; j++) {
            if (strcmp(problem->param[j].name, param->name) == 0) {
                rc = fail(reader, &here, "the name \"%s\" is used twice; choose another",
                          param->name);
            }
        }
        param->type = (enum param_type)type;
        reader->int_name[i] = rc == 0 && param->type == PARAM_INT ? param->name : "";
    }
    return rc;
}

struct distribution_row {
    const char *name;    // in problem.json
    const char *part[2]; // its parameters; NULL: none
};

static const struct distribution_row distribution_table[] = {
    [VALUES_NORMAL] = {"normal", {"mean", "stddev"}},
    [VALUES_UNIFORM] = {"uniform", {"low", "high"}},
    [VALUES_INTEGERS] = {"integers", {"low", "high"}},
    [VALUES_ZIPF] = {"zipf", {"count", "exponent"}},
    [VALUES_WIDE] = {"wide", {"low", "high"}},
    [VALUES_SORTED] = {"sorted", {"low", "high"}},
    [VALUES_ONE_HOT] = {"one-hot", {NULL, NULL}},
};

// The greatest value an input of each dtype is drawn from, and the greatest below which every
// integer is exact.
static const struct value_limit {
    double most, exact;
} value_limits[] = {
    [DTYPE_F32] = {FLT_MAX, EXACT_F32},
    [DTYPE_F64] = {DBL_MAX, EXACT_F64},
    [DTYPE_I32] = {2147483647.0, 2147483647.0},
    [DTYPE_I64] = {EXACT_F64, EXACT_F64},
    [DTYPE_U8] = {255, 255},
    [DTYPE_F16] = {65504, 2048},
    [DTYPE_BF16] = {0x1.fep127, 256},
    [DTYPE_E4M3] = {448, 16},
    [DTYPE_E5M2] = {57344, 8},
    [DTYPE_I8] = {127, 127},
};

static bool is_float_type(enum dtype dtype)
{
    return dtype_roundoff(dtype) < 1.0;
}

static void value_range(enum dtype dtype, bool integers, double *ret_min, double *ret_max)
{
    *ret_max = integers ? value_limits[dtype].exact : value_limits[dtype].most;
    *ret_min = dtype == DTYPE_U8    ? 0.0
               : dtype == DTYPE_I32 ? -2147483648.0
               : dtype == DTYPE_I8  ? -128.0
                                    : -*ret_max;
}

// Checks the numbers of a distribution against each other and against the dtype.
static int check_values(const struct reader *reader, const struct where *where,
                        const struct tensor *tensor)
{
    bool is_float = is_float_type(tensor->dtype);
    bool integers = tensor->distribution == VALUES_INTEGERS;
    double first = tensor->value[0], second = tensor->value[1], min = 0.0, max = 0.0;
    value_range(tensor->dtype, integers || tensor->distribution == VALUES_ZIPF, &min, &max);
    switch (tensor->distribution) {
    case VALUES_NORMAL:
    case VALUES_WIDE:
        if (!is_float) {
            return fail(reader, where, "%s values need a floating-point dtype; use integers",
                        distribution_table[tensor->distribution].name);
        }
        if (tensor->distribution == VALUES_NORMAL && second < 0.0) {
            return fail(reader, where, "stddev is negative; use 0 or more");
        }
        if (tensor->distribution == VALUES_WIDE && first <= 0.0) {
            return fail(reader, where,
                        "low must be above 0, because magnitudes are drawn on a logarithmic scale");
        }
        break;
    case VALUES_ZIPF:
        if (first < 1.0 || first != floor(first) || first - 1.0 > max) {
            return fail(
                reader, where,
                "count must be an integer from 1 to %.17g, so that every rank fits dtype %s",
                max + 1.0, dtype_name(tensor->dtype));
        }
        if (second < 0.0 || second > 100.0) {
            return fail(reader, where, "exponent must lie between 0 and 100");
        }
        return 0;
    case VALUES_INTEGERS:
        if (first != floor(first) || second != floor(second)) {
            return fail(reader, where, "low and high of integers must be integers");
        }
        break;
    case VALUES_UNIFORM:
    case VALUES_SORTED:
        break;
    case VALUES_ONE_HOT:
        return 0;
    }
    if (first < min || first > max || second < min || second > max) {
        return fail(reader, where, "the values do not fit dtype %s, %.17g to %.17g",
                    dtype_name(tensor->dtype), min, max);
    }
    if (tensor->distribution != VALUES_NORMAL && (first > second || !isfinite(second - first))) {
        return fail(reader, where, "low must be at most high, and their distance a finite number");
    }
    return 0;
}

static int read_values(const struct reader *reader, const struct where *where, const json_t *object,
                       struct tensor *tensor)
{
    const char *names[ARRAY_LEN(distribution_table)], *keys[3] = {"distribution"};
    size_t key_count = 1, choice = 0;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        names[i] = distribution_table[i].name;
    }
    json_t *values = NULL;
    struct where here;
    int rc = get(reader, where, object, "values", WANT_OBJECT, &values, &here);
    if (rc == 0) {
        rc = get_choice(reader, &here, values, "distribution", names, ARRAY_LEN(names), &choice);
    }
    if (rc != 0) {
        return rc;
    }
    tensor->distribution = (enum distribution)choice;
    for (size_t i = 0; i < 2 && rc == 0; i++) {
        const char *part = distribution_table[choice].part[i];
        if (!part) {
            continue;
        }
        keys[key_count++] = part;
        rc = get_number(reader, &here, values, part, -DBL_MAX, DBL_MAX, &tensor->value[i]);
    }
    if (rc == 0) {
        rc = check_keys(reader, &here, values, keys, key_count);
    }
    if (rc == 0) {
        rc = check_values(reader, &here, tensor);
    }
    return rc;
}

static int read_shape(const struct reader *reader, const struct where *where, const json_t *object,
                      struct tensor *tensor)
{
    json_t *list = NULL;
    struct where at;
    int rc = get_list(reader, where, object, "shape", 0, PROBLEM_RANK_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct where here = below(&at, "[%zu]", i);
        rc = read_expr(reader, &here, json_array_get(list, i), &tensor->shape[i]);
        if (rc == 0) {
            tensor->rank++;
        }
    }
    return rc;
}

static int read_tensor(const struct reader *reader, const struct where *where, const json_t *entry,
                       struct tensor *tensor)
{
    static const char *const directions[] = {"in", "out", "inout"};
    // In the order of enum dtype; C problems have the first five.
    static const char *const dtypes[] = {"f32", "f64",  "i32",  "i64",  "u8",
                                         "f16", "bf16", "e4m3", "e5m2", "i8"};
    size_t direction = 0, dtype = 0;
    int rc = get_identifier(reader, where, entry, "name", &tensor->name);
    if (rc != 0) {
        goto out;
    }
    rc = get_choice(reader, where, entry, "direction", directions, ARRAY_LEN(directions),
                    &direction);
    if (rc != 0) {
        goto out;
    }
    rc = get_choice(reader, where, entry, "dtype", dtypes,
                    reader->problem->cuda ? ARRAY_LEN(dtypes) : C_DTYPES, &dtype);
    if (rc != 0) {
        goto out;
    }
    rc = read_shape(reader, where, entry, tensor);
out:
    if (rc != 0) {
        return rc;
    }
    tensor->direction = (enum direction)direction;
    tensor->dtype = (enum dtype)dtype;
    if (tensor->direction != DIRECTION_OUT) {
        rc = read_values(reader, where, entry, tensor);
    } else if (json_object_get(entry, "values")) {
        rc = fail(reader, where, "an out tensor has no \"values\"; remove the key");
    }
    if (rc != 0) {
        return rc;
    }
    if (tensor->direction != DIRECTION_IN) {
        return get_number(reader, where, entry, "tolerance", 0.0, DBL_MAX, &tensor->tolerance);
    }
    if (json_object_get(entry, "tolerance")) {
        rc = fail(reader, where, "an in tensor has no \"tolerance\"; remove the key");
    }
    return rc;
}

static int read_tensors(const struct reader *reader, const struct where *root, const json_t *object)
{
    static const char *const keys[] = {"name",  "direction", "dtype",
                                       "shape", "values",    "tolerance"};
    struct problem *problem = reader->problem;
    bool has_output = false;
    json_t *list = NULL;
    struct where at;
    int rc = get_list(reader, root, object, "tensors", 1, PROBLEM_TENSOR_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        json_t *entry = json_array_get(list, i);
        struct where here = below(&at, "[%zu]", i);
        struct tensor *tensor = &problem->tensor[problem->tensor_count++];
        rc = check_type(reader, &here, entry, WANT_OBJECT);
        if (rc == 0) {
            rc = check_keys(reader, &here, entry, keys, ARRAY_LEN(keys));
        }
        if (rc == 0) {
            rc = read_tensor(reader, &here, entry, tensor);
        }
        has_output = has_output || (rc == 0 && tensor->direction != DIRECTION_IN);
    }
    if (rc == 0 && !has_output) {
        rc =
            fail(reader, &at, "no tensor has direction out or inout; an operation needs an output");
    }
    return rc;
}

// Every name that stands in a prototype, the derived ones of the reference's too, may occur once.
static int check_names(const struct reader *reader, const struct where *root)
{
    const struct problem *problem = reader->problem;
    const char *name[3 * PROBLEM_TENSOR_MAX + PROBLEM_PARAM_MAX];
    size_t count = 0, derived_count = 0;
    for (size_t i = 0; i < problem->param_count; i++) {
        name[count++] = problem->param[i].name;
    }
    for (size_t i = 0; i < problem->tensor_count; i++) {
        name[count++] = problem->tensor[i].name;
    }
    char derived[2 * PROBLEM_TENSOR_MAX][IDENTIFIER_MAX + 16];
    for (size_t i = 0; i < problem->tensor_count; i++) {
        const struct tensor *tensor = &problem->tensor[i];
        if (tensor->direction == DIRECTION_IN) {
            continue;
        }
        snprintf(derived[derived_count], sizeof derived[0], "%s_scale", tensor->name);
        name[count++] = derived[derived_count++];
        if (tensor->direction == DIRECTION_OUT) {
            continue;
        }
        snprintf(derived[derived_count], sizeof derived[0], "%s_out", tensor->name);
        name[count++] = derived[derived_count++];
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(name[i], name[j]) == 0) {
                struct where here = below(root, ".tensors");
                return fail(reader, &here,
                            "the name \"%s\" is used twice among params, tensors and the "
                            "reference's arguments "
                            "(NAME_scale, NAME_out); choose another",
                            name[i]);
            }
        }
    }
    return 0;
}

// One object with a value for every parameter and nothing else.
static int read_case(const struct reader *reader, const struct where *where, json_t *object,
                     struct shape_case *ret)
{
    const struct problem *problem = reader->problem;
    const char *keys[PROBLEM_PARAM_MAX];
    for (size_t i = 0; i < problem->param_count; i++) {
        keys[i] = problem->param[i].name;
    }
    int rc = check_type(reader, where, object, WANT_OBJECT);
    if (rc == 0) {
        rc = check_keys(reader, where, object, keys, problem->param_count);
    }
    for (size_t i = 0; i < problem->param_count && rc == 0; i++) {
        rc = problem->param[i].type == PARAM_INT
                 ? get_integer(reader, where, object, keys[i], INT64_MIN, INT64_MAX, &ret->i[i])
                 : get_number(reader, where, object, keys[i], -DBL_MAX, DBL_MAX, &ret->f[i]);
    }
    size_t elements = 0;
    double flops = 0.0, bytes = 0.0;
    struct err inner = ERR_INIT;
    int inner_rc = 0;
    for (size_t i = 0; i < problem->tensor_count && rc == 0 && inner_rc == 0; i++) {
        inner_rc = problem_elements(problem, i, ret, &elements, &inner);
    }
    if (rc == 0 && inner_rc == 0) {
        inner_rc = problem_work(problem, ret, &flops, &bytes, &inner);
    }
    return rc != 0 || inner_rc == 0 ? rc : fail(reader, where, "%s", inner.text);
}

static int read_check(const struct reader *reader, const struct where *where, const json_t *cases)
{
    struct problem *problem = reader->problem;
    json_t *list = NULL;
    struct where at;
    int rc = get_list(reader, where, cases, "check", 1, PROBLEM_CASE_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct where here = below(&at, "[%zu]", i);
        rc = read_case(reader, &here, json_array_get(list, i),
                       &problem->check[problem->check_count++]);
    }
    return rc;
}

static int read_bench(const struct reader *reader, const struct where *where, const json_t *cases)
{
    static const char *const keys[] = {"params", "weight"};
    struct problem *problem = reader->problem;
    double sum = 0.0;
    json_t *list = NULL, *params = NULL;
    struct where at, params_at;
    int rc = get_list(reader, where, cases, "bench", 1, PROBLEM_CASE_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        json_t *entry = json_array_get(list, i);
        struct where here = below(&at, "[%zu]", i);
        struct shape_case *bench = &problem->bench[problem->bench_count++];
        rc = check_type(reader, &here, entry, WANT_OBJECT);
        if (rc == 0) {
            rc = check_keys(reader, &here, entry, keys, ARRAY_LEN(keys));
        }
        if (rc == 0) {
            rc = get(reader, &here, entry, "params", WANT_OBJECT, &params, &params_at);
        }
        if (rc == 0) {
            rc = read_case(reader, &params_at, params, bench);
        }
        if (rc == 0) {
            rc = get_number(reader, &here, entry, "weight", WEIGHT_MIN, WEIGHT_MAX, &bench->weight);
        }
        sum += bench->weight;
    }
    for (size_t i = 0; rc == 0 && i < problem->bench_count; i++) {
        problem->bench[i].weight /= sum;
    }
    return rc;
}

static int read_range(const struct reader *reader, const struct where *where, json_t *object,
                      struct hidden_range *ret)
{
    static const char *const keys[] = {"min", "max", "multiple"};
    struct hidden_range range = {.multiple = 1};
    int rc = check_type(reader, where, object, WANT_OBJECT);
    if (rc != 0) {
        goto out;
    }
    rc = check_keys(reader, where, object, keys, ARRAY_LEN(keys));
    if (rc != 0) {
        goto out;
    }
    rc = get_integer(reader, where, object, "min", 0, HIDDEN_LIMIT, &range.min);
    if (rc != 0) {
        goto out;
    }
    rc = get_integer(reader, where, object, "max", 0, HIDDEN_LIMIT, &range.max);
    if (rc != 0) {
        goto out;
    }
    if (json_object_get(object, "multiple")) {
        rc = get_integer(reader, where, object, "multiple", 1, HIDDEN_LIMIT, &range.multiple);
    }
out:
    if (rc != 0) {
        return rc;
    }
    if (range.min > range.max) {
        return fail(reader, where, "min is above max; exchange them");
    }
    if (range.max / range.multiple * range.multiple < range.min) {
        return fail(reader, where, "no multiple of %lld lies between min and max; widen the range",
                    (long long)range.multiple);
    }
    *ret = range;
    return 0;
}

static int read_hidden(const struct reader *reader, const struct where *where, const json_t *cases)
{
    struct problem *problem = reader->problem;
    if (!json_object_get(cases, "hidden")) {
        return 0;
    }
    const char *keys[PROBLEM_PARAM_MAX];
    size_t count = 0;
    for (size_t i = 0; i < problem->param_count; i++) {
        if (problem->param[i].type == PARAM_INT) {
            keys[count++] = problem->param[i].name;
        }
    }
    json_t *object = NULL;
    struct where at;
    int rc = get(reader, where, cases, "hidden", WANT_OBJECT, &object, &at);
    if (rc == 0 && count == 0) {
        rc = fail(reader, &at, "there is no int parameter to draw; remove the key");
    }
    if (rc == 0) {
        rc = check_keys(reader, &at, object, keys, count);
    }
    for (size_t i = 0; i < problem->param_count && rc == 0; i++) {
        if (problem->param[i].type != PARAM_INT) {
            continue;
        }
        json_t *range = NULL;
        struct where here;
        rc = get(reader, &at, object, problem->param[i].name, WANT_OBJECT, &range, &here);
        if (rc == 0) {
            rc = read_range(reader, &here, range, &problem->hidden[i]);
        }
    }
    problem->has_hidden = rc == 0;
    struct shape_case drawn[PROBLEM_HIDDEN_CASES];
    if (rc == 0 && problem_hidden_cases(problem, 0, drawn) == 0) {
        rc = fail(reader, &at, "none of the shapes drawn from the ranges evaluates; narrow them");
    }
    return rc;
}

static int read_cases(const struct reader *reader, const struct where *root, const json_t *object)
{
    static const char *const keys[] = {"check", "bench", "hidden"};
    json_t *cases = NULL;
    struct where here;
    int rc = get(reader, root, object, "cases", WANT_OBJECT, &cases, &here);
    if (rc != 0) {
        return rc;
    }
    rc = check_keys(reader, &here, cases, keys, ARRAY_LEN(keys));
    if (rc != 0) {
        return rc;
    }
    rc = read_check(reader, &here, cases);
    if (rc != 0) {
        return rc;
    }
    rc = read_bench(reader, &here, cases);
    if (rc != 0) {
        return rc;
    }
    rc = read_hidden(reader, &here, cases);
    return rc;
}

static int read_work(const struct reader *reader, const struct where *root, const json_t *object)
{
    static const char *const keys[] = {"flops", "bytes", "unit"};
    // In the order of enum work_unit.
    static const char *const units[] = {"f32", "f64", "tf32", "f16", "bf16", "fp8", "i8"};
    json_t *work = NULL, *value = NULL;
    struct where here, at;
    int rc = get(reader, root, object, "work", WANT_OBJECT, &work, &here);
    if (rc == 0) {
        rc = check_keys(reader, &here, work, keys,
                        reader->problem->cuda ? ARRAY_LEN(keys) : ARRAY_LEN(keys) - 1);
    }
    size_t unit = UNIT_F32;
    if (rc == 0 && json_object_get(work, "unit")) {
        rc = get_choice(reader, &here, work, "unit", units, ARRAY_LEN(units), &unit);
    }
    reader->problem->unit = (enum work_unit)unit;
    if (rc != 0) {
        return rc;
    }
    rc = get(reader, &here, work, "flops", WANT_TEXT, &value, &at);
    if (rc != 0) {
        return rc;
    }
    rc = read_expr(reader, &at, value, &reader->problem->flops);
    if (rc != 0) {
        return rc;
    }
    rc = get(reader, &here, work, "bytes", WANT_TEXT, &value, &at);
    if (rc != 0) {
        return rc;
    }
    rc = read_expr(reader, &at, value, &reader->problem->bytes);
    return rc;
}

static int read_entry(const struct reader *reader, const struct where *root, const json_t *object)
{
    struct problem *problem = reader->problem;
    if (problem->cuda) {
        return !json_object_get(object, "entry")
                   ? 0
                   : fail(reader, root,
                          "a cuda problem has no \"entry\": candidates name their kernels");
    }
    int rc = get_identifier(reader, root, object, "entry", &problem->entry);
    if (rc == 0 &&
        (strcmp(problem->entry, "main") == 0 || strcmp(problem->entry, "reference") == 0)) {
        struct where here = below(root, ".entry");
        rc = fail(reader, &here, "the name \"%s\" has a meaning of its own; choose another",
                  problem->entry);
    }
    return rc;
}

static int read_problem(struct reader *reader, json_t *root)
{
    static const char *const keys[] = {"name",   "title",   "license", "language", "entry",
                                       "params", "tensors", "cases",   "cache",    "work"};
    static const char *const languages[] = {"c", "cuda"}, *const caches[] = {"warm", "cold"};
    static const char license_characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.+-() ";
    static const char name_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
    struct problem *problem = reader->problem;
    struct where at = {"$"};
    int rc = check_type(reader, &at, root, WANT_OBJECT);
    if (rc == 0) {
        rc = check_keys(reader, &at, root, keys, ARRAY_LEN(keys));
    }
    if (rc == 0) {
        rc = get_text(reader, &at, root, "name", 40, name_characters, &problem->name);
    }
    if (rc == 0) {
        rc = get_text(reader, &at, root, "title", TEXT_MAX, NULL, &problem->title);
    }
    if (rc == 0) {
        rc =
            get_text(reader, &at, root, "license", TEXT_MAX, license_characters, &problem->license);
    }
    size_t choice = 0;
    if (rc == 0) {
        rc = get_choice(reader, &at, root, "language", languages, ARRAY_LEN(languages), &choice);
    }
    if (rc == 0) {
        problem->language = xstrdup(languages[choice]);
    }
    problem->cuda = rc == 0 && choice == 1;
    if (rc != 0) {
        return rc;
    }
    rc = read_entry(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = read_params(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = read_tensors(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = check_names(reader, &at);
    if (rc != 0) {
        return rc;
    }
    rc = get_choice(reader, &at, root, "cache", caches, ARRAY_LEN(caches), &choice);
    if (rc != 0) {
        return rc;
    }
    problem->cache = (enum cache_regime)choice;
    if (rc != 0) {
        return rc;
    }
    rc = read_work(reader, &at, root);
    if (rc != 0) {
        return rc;
    }
    rc = read_cases(reader, &at, root);
    return rc;
}

int problem_parse(struct problem **ret, const char *json, size_t len, const char *path,
                  struct err *err)
{
    if (len > PROBLEM_JSON_MAX) {
        return err_set(err, ERR_LIMIT, "%s: is larger than %zu bytes; shorten it", path,
                       PROBLEM_JSON_MAX);
    }
    struct problem *problem = xcalloc(1, sizeof *problem);
    struct reader reader = {.path = path, .problem = problem, .err = err};
    json_error_t fault;
    json_auto_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &fault);
    int rc = root ? read_problem(&reader, root)
                  : err_set(err, ERR_INVALID, "%s:%d:%d: is not valid JSON: %s", path, fault.line,
                            fault.column, quote(fault.text).text);
    if (rc != 0) {
        problem_free(problem);
        return rc;
    }
    problem->digest = digest_of(json, len);
    *ret = problem;
    return 0;
}

void problem_free(struct problem *problem)
{
    if (!problem) {
        return;
    }
    free(problem->name);
    free(problem->title);
    free(problem->license);
    free(problem->language);
    free(problem->entry);
    for (size_t i = 0; i < PROBLEM_PARAM_MAX; i++) {
        free(problem->param[i].name);
    }
    for (size_t i = 0; i < PROBLEM_TENSOR_MAX; i++) {
        free(problem->tensor[i].name);
        for (size_t j = 0; j < PROBLEM_RANK_MAX; j++) {
            expr_free(problem->tensor[i].shape[j]);
        }
    }
    expr_free(problem->flops);
    expr_free(problem->bytes);
    free(problem);
}
