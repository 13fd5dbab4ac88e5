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
            return reader_fail(reader, where, "%s values need a floating-point dtype; use integers",
                               distribution_table[tensor->distribution].name);
        }
        if (tensor->distribution == VALUES_NORMAL && second < 0.0) {
            return reader_fail(reader, where, "stddev is negative; use 0 or more");
        }
        if (tensor->distribution == VALUES_WIDE && first <= 0.0) {
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
                max + 1.0, dtype_name(tensor->dtype));
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
                           dtype_name(tensor->dtype), min, max);
    }
    if (tensor->distribution != VALUES_NORMAL && (first > second || !isfinite(second - first))) {
        return reader_fail(reader, where,
                           "low must be at most high, and their distance a finite number");
    }
    return 0;
}

static int read_values(const struct reader *reader, const struct json_path *where,
                       const json_t *object, struct tensor *tensor)
{
    const char *names[ARRAY_LEN(distribution_table)], *keys[3] = {"distribution"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        names[i] = distribution_table[i].name;
    }
    json_t *values = NULL;
    struct json_path here;
    int rc = reader_get(reader, where, object, "values", KIND_OBJECT, &values, &here);
    if (rc != 0) {
        return rc;
    }
    size_t choice = 0;
    rc = reader_get_choice(reader, &here, values, "distribution", names, ARRAY_LEN(names), &choice);
    if (rc != 0) {
        return rc;
    }
    tensor->distribution = (enum distribution)choice;
    size_t key_count = 1;
    for (size_t i = 0; i < 2; i++) {
        const char *part = distribution_table[choice].part[i];
        if (!part) {
            continue;
        }
        keys[key_count++] = part;
        rc = reader_get_number(reader, &here, values, part, -DBL_MAX, DBL_MAX, &tensor->value[i]);
        if (rc != 0) {
            return rc;
        }
    }
    rc = reader_check_keys(reader, &here, values, keys, key_count);
    return rc != 0 ? rc : check_values(reader, &here, tensor);
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
    static const char *const keys[] = {"name",  "direction", "dtype",
                                       "shape", "values",    "tolerance"};
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
    if (tensor->direction != DIRECTION_OUT) {
        rc = read_values(reader, where, entry, tensor);
    } else if (json_object_get(entry, "values")) {
        rc = reader_fail(reader, where, "an out tensor has no \"values\"; remove the key");
    }
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
