// Reads the tensors of a problem: names, types, shapes, and the distributions of input values.
#include "common/mem.h"
#include "problem/problem_reader.h"
#include <float.h>
#include <math.h>

#define EXACT_F32 16777216.0         // integers up to here are exact in f32
#define EXACT_F64 9007199254740992.0 // integers up to here are exact in f64
#define C_DTYPES 5                   // number of dtypes that C problems have

struct distribution_row {
    const char *name;    // in problem.json
    const char *part[2]; // keys of its parameters, NULL: none
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

const char *distribution_name(enum distribution distribution)
{
    return distribution_table[distribution].name;
}

void values_text(const struct values *values, struct strbuf *out)
{
    const struct distribution_row *row = &distribution_table[values->distribution];
    double parameter[2] = {values->a, values->b};
    strbuf_adds(out, row->name);
    for (size_t i = 0; i < 2 && row->part[i]; i++) {
        strbuf_addf(out, "%s%s=%.9g", i == 0 ? "(" : ", ", row->part[i], parameter[i]);
    }
    strbuf_adds(out, row->part[0] ? ")" : "");
}

// The limits of input values for each dtype.
static const struct value_limit {
    double most;  // greatest value
    double exact; // greatest value up to which every integer is exact
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

// The range of input values of a dtype. `integers`: within it, every integer must be exact.
static void value_range(enum dtype dtype, bool integers, double *ret_min, double *ret_max)
{
    *ret_max = integers ? value_limits[dtype].exact : value_limits[dtype].most;
    *ret_min = dtype == DTYPE_U8    ? 0.0
               : dtype == DTYPE_I32 ? -2147483648.0
               : dtype == DTYPE_I8  ? -128.0
                                    : -*ret_max;
}

// Checks the parameters of a distribution against each other and against the dtype.
static int check_values(const struct reader *reader, const struct json_path *where,
                        enum dtype dtype, const struct values *values)
{
    enum distribution distribution = values->distribution;
    bool is_float = is_float_type(dtype);
    double first = values->a, second = values->b, min = 0.0, max = 0.0;
    value_range(dtype, distribution == VALUES_INTEGERS || distribution == VALUES_ZIPF, &min, &max);
    switch (distribution) {
    case VALUES_NORMAL:
    case VALUES_WIDE:
        if (!is_float) {
            return reader_fail(reader, where, "%s values need a floating-point dtype; use integers",
                               distribution_table[distribution].name);
        }
        if (distribution == VALUES_NORMAL && second < 0.0) {
            return reader_fail(reader, where, "stddev is negative; use 0 or more");
        }
        if (distribution == VALUES_WIDE && first <= 0.0) {
            return reader_fail(
                reader, where,
                "low must be above 0, because magnitudes are drawn on a logarithmic scale");
        }
        break;
    case VALUES_ZIPF:
        if (first < 1.0 || first != floor(first) || first - 1.0 > max) {
            return reader_fail(
                reader, where,
                "count must be an integer from 1 to %.17g, so that every rank fits dtype %s",
                max + 1.0, dtype_name(dtype));
        }
        if (second < 0.0 || second > 100.0) {
            return reader_fail(reader, where, "exponent must lie between 0 and 100");
        }
        return 0;
    case VALUES_INTEGERS:
        if (first != floor(first) || second != floor(second)) {
            return reader_fail(reader, where, "low and high of integers must be integers");
        }
        break;
    case VALUES_UNIFORM:
    case VALUES_SORTED:
        break;
    case VALUES_ONE_HOT:
        return 0;
    }
    if (first < min || first > max || second < min || second > max) {
        return reader_fail(reader, where, "the values do not fit dtype %s, %.17g to %.17g",
                           dtype_name(dtype), min, max);
    }
    if (distribution != VALUES_NORMAL && (first > second || !isfinite(second - first))) {
        return reader_fail(reader, where,
                           "low must be at most high, and their distance a finite number");
    }
    return 0;
}

// Reads one distribution, the object `object` at path `where`.
static int read_values(const struct reader *reader, const struct json_path *where, json_t *object,
                       enum dtype dtype, struct values *values)
{
    const char *names[ARRAY_LEN(distribution_table)], *keys[3] = {"distribution"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        names[i] = distribution_table[i].name;
    }
    size_t choice = 0;
    int rc =
        reader_get_choice(reader, where, object, "distribution", names, ARRAY_LEN(names), &choice);
    if (rc != 0) {
        return rc;
    }
    values->distribution = (enum distribution)choice;
    double *parameter[2] = {&values->a, &values->b};
    size_t key_count = 1;
    for (size_t i = 0; i < 2; i++) {
        const char *part = distribution_table[choice].part[i];
        if (!part) {
            continue;
        }
        keys[key_count++] = part;
        rc = reader_get_number(reader, where, object, part, -DBL_MAX, DBL_MAX, parameter[i]);
        if (rc != 0) {
            return rc;
        }
    }
    rc = reader_check_keys(reader, where, object, keys, key_count);
    return rc != 0 ? rc : check_values(reader, where, dtype, values);
}

// Reads the further distributions of a tensor, where it has any.
static int read_also(const struct reader *reader, const struct json_path *where,
                     const json_t *entry, struct tensor *tensor)
{
    json_t *list = NULL;
    struct json_path at;
    if (!json_object_get(entry, "also")) {
        return 0;
    }
    int rc = reader_get_list(reader, where, entry, "also", 1, PROBLEM_ALSO_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct json_path here = json_path_below(&at, "[%zu]", i);
        json_t *object = json_array_get(list, i);
        rc = reader_check_kind(reader, &here, object, KIND_OBJECT);
        rc = rc == 0 ? read_values(reader, &here, object, tensor->dtype, &tensor->also[i]) : rc;
    }
    tensor->also_count = rc == 0 ? json_array_size(list) : 0;
    return rc;
}

// Reads how an in or inout tensor is filled.
static int read_input(const struct reader *reader, const struct json_path *where,
                      const json_t *entry, struct tensor *tensor)
{
    json_t *values = NULL;
    struct json_path here;
    int rc = reader_get(reader, where, entry, "values", KIND_OBJECT, &values, &here);
    if (rc != 0) {
        return rc;
    }
    rc = read_values(reader, &here, values, tensor->dtype, &tensor->values);
    return rc != 0 ? rc : read_also(reader, where, entry, tensor);
}

// Refuses what says how a tensor is filled where it is not.
static int refuse_input(const struct reader *reader, const struct json_path *where,
                        const json_t *entry)
{
    static const char *const keys[] = {"values", "also"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (json_object_get(entry, keys[i])) {
            return reader_fail(reader, where, "an out tensor has no \"%s\"; remove the key",
                               keys[i]);
        }
    }
    return 0;
}

static int read_shape(const struct reader *reader, const struct json_path *where,
                      const json_t *object, struct tensor *tensor)
{
    json_t *list = NULL;
    struct json_path at;
    int rc = reader_get_list(reader, where, object, "shape", 0, PROBLEM_RANK_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct json_path here = json_path_below(&at, "[%zu]", i);
        rc = reader_expr(reader, &here, json_array_get(list, i), &tensor->shape[i]);
        if (rc == 0) {
            tensor->rank++;
        }
    }
    return rc;
}

static int read_tensor(const struct reader *reader, const struct json_path *where, json_t *entry,
                       struct tensor *tensor)
{
    static const char *const keys[] = {"name",   "direction", "dtype",    "shape",
                                       "values", "also",      "tolerance"};
    static const char *const directions[] = {"in", "out", "inout"};
    // In the order of enum dtype. C problems have the first C_DTYPES only.
    static const char *const dtypes[] = {"f32", "f64",  "i32",  "i64",  "u8",
                                         "f16", "bf16", "e4m3", "e5m2", "i8"};
    int rc = reader_check_object(reader, where, entry, keys, ARRAY_LEN(keys));
    if (rc != 0) {
        return rc;
    }
    rc = reader_get_identifier(reader, where, entry, "name", &tensor->name);
    if (rc != 0) {
        return rc;
    }
    size_t direction = 0;
    rc = reader_get_choice(reader, where, entry, "direction", directions, ARRAY_LEN(directions),
                           &direction);
    if (rc != 0) {
        return rc;
    }
    size_t dtype = 0;
    rc = reader_get_choice(reader, where, entry, "dtype", dtypes,
                           reader->problem->cuda ? ARRAY_LEN(dtypes) : C_DTYPES, &dtype);
    if (rc != 0) {
        return rc;
    }
    rc = read_shape(reader, where, entry, tensor);
    if (rc != 0) {
        return rc;
    }
    tensor->direction = (enum direction)direction;
    tensor->dtype = (enum dtype)dtype;
    rc = tensor->direction != DIRECTION_OUT ? read_input(reader, where, entry, tensor)
                                            : refuse_input(reader, where, entry);
    if (rc != 0) {
        return rc;
    }
    if (tensor->direction != DIRECTION_IN) {
        return reader_get_number(reader, where, entry, "tolerance", 0.0, DBL_MAX,
                                 &tensor->tolerance);
    }
    if (json_object_get(entry, "tolerance")) {
        return reader_fail(reader, where, "an in tensor has no \"tolerance\"; remove the key");
    }
    return 0;
}

int problem_read_tensors(const struct reader *reader, const struct json_path *where,
                         const json_t *root)
{
    struct problem *problem = reader->problem;
    json_t *list = NULL;
    struct json_path at;
    int rc = reader_get_list(reader, where, root, "tensors", 1, PROBLEM_TENSOR_MAX, &list, &at);
    if (rc != 0) {
        return rc;
    }
    bool has_output = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_path here = json_path_below(&at, "[%zu]", i);
        struct tensor *tensor = &problem->tensor[problem->tensor_count++];
        rc = read_tensor(reader, &here, json_array_get(list, i), tensor);
        if (rc != 0) {
            return rc;
        }
        has_output = has_output || tensor->direction != DIRECTION_IN;
    }
    if (!has_output) {
        return reader_fail(reader, &at,
                           "no tensor has direction out or inout; an operation needs an output");
    }
    return 0;
}
