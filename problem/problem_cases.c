// Reads the cases of a problem: the listed check and benchmark cases, and the ranges of hidden
// ones. Every listed case is evaluated here, so that an accepted problem has positive, bounded
// shapes and an amount of work for each of them.
#include "common/mem.h"
#include "problem/problem_reader.h"
#include <float.h>

#define HIDDEN_LIMIT ((int64_t)1 << 40) // greatest end of a hidden range
#define WEIGHT_MIN 1e-6
#define WEIGHT_MAX 1e6

// Reads an object with a value for every parameter and nothing else.
static int read_case(const struct reader *reader, const struct json_path *where, json_t *object,
                     struct shape_case *ret)
{
    const struct problem *problem = reader->problem;
    const char *keys[PROBLEM_PARAM_MAX];
    for (size_t i = 0; i < problem->param_count; i++) {
        keys[i] = problem->param[i].name;
    }
    int rc = reader_check_object(reader, where, object, keys, problem->param_count);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < problem->param_count; i++) {
        rc = problem->param[i].type == PARAM_INT
                 ? reader_get_integer(reader, where, object, keys[i], INT64_MIN, INT64_MAX,
                                      &ret->i[i])
                 : reader_get_number(reader, where, object, keys[i], -DBL_MAX, DBL_MAX, &ret->f[i]);
        if (rc != 0) {
            return rc;
        }
    }
    struct err inner = ERR_INIT;
    if (problem_check_case(problem, ret, &inner) != 0) {
        return reader_fail(reader, where, "%s", inner.text);
    }
    return 0;
}

static int read_check(const struct reader *reader, const struct json_path *where,
                      const json_t *cases)
{
    struct problem *problem = reader->problem;
    json_t *list = NULL;
    struct json_path at;
    int rc = reader_get_list(reader, where, cases, "check", 1, PROBLEM_CASE_MAX, &list, &at);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        struct json_path here = json_path_below(&at, "[%zu]", i);
        rc = read_case(reader, &here, json_array_get(list, i),
                       &problem->check[problem->check_count++]);
    }
    return rc;
}

static int read_bench_case(const struct reader *reader, const struct json_path *where,
                           json_t *entry, struct shape_case *ret)
{
    static const char *const keys[] = {"params", "weight"};
    int rc = reader_check_object(reader, where, entry, keys, ARRAY_LEN(keys));
    if (rc != 0) {
        return rc;
    }
    json_t *params = NULL;
    struct json_path params_at;
    rc = reader_get(reader, where, entry, "params", KIND_OBJECT, &params, &params_at);
    if (rc != 0) {
        return rc;
    }
    rc = read_case(reader, &params_at, params, ret);
    if (rc != 0) {
        return rc;
    }
    return reader_get_number(reader, where, entry, "weight", WEIGHT_MIN, WEIGHT_MAX, &ret->weight);
}

static int read_bench(const struct reader *reader, const struct json_path *where,
                      const json_t *cases)
{
    struct problem *problem = reader->problem;
    json_t *list = NULL;
    struct json_path at;
    int rc = reader_get_list(reader, where, cases, "bench", 1, PROBLEM_CASE_MAX, &list, &at);
    if (rc != 0) {
        return rc;
    }
    double sum = 0.0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        struct json_path here = json_path_below(&at, "[%zu]", i);
        struct shape_case *bench = &problem->bench[problem->bench_count++];
        rc = read_bench_case(reader, &here, json_array_get(list, i), bench);
        if (rc != 0) {
            return rc;
        }
        sum += bench->weight;
    }
    for (size_t i = 0; i < problem->bench_count; i++) {
        problem->bench[i].weight /= sum;
    }
    return 0;
}

static int read_range(const struct reader *reader, const struct json_path *where, json_t *object,
                      struct hidden_range *ret)
{
    static const char *const keys[] = {"min", "max", "multiple"};
    struct hidden_range range = {.multiple = 1};
    int rc = reader_check_object(reader, where, object, keys, ARRAY_LEN(keys));
    if (rc != 0) {
        return rc;
    }
    rc = reader_get_integer(reader, where, object, "min", 0, HIDDEN_LIMIT, &range.min);
    if (rc != 0) {
        return rc;
    }
    rc = reader_get_integer(reader, where, object, "max", 0, HIDDEN_LIMIT, &range.max);
    if (rc != 0) {
        return rc;
    }
    if (json_object_get(object, "multiple")) {
        rc =
            reader_get_integer(reader, where, object, "multiple", 1, HIDDEN_LIMIT, &range.multiple);
        if (rc != 0) {
            return rc;
        }
    }
    if (range.min > range.max) {
        return reader_fail(reader, where, "min is above max; exchange them");
    }
    if (range.max / range.multiple * range.multiple < range.min) {
        return reader_fail(reader, where,
                           "no multiple of %lld lies between min and max; widen the range",
                           (long long)range.multiple);
    }
    *ret = range;
    return 0;
}

static int read_hidden(const struct reader *reader, const struct json_path *where,
                       const json_t *cases)
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
    struct json_path at;
    int rc = reader_get(reader, where, cases, "hidden", KIND_OBJECT, &object, &at);
    if (rc != 0) {
        return rc;
    }
    if (count == 0) {
        return reader_fail(reader, &at, "there is no int parameter to draw; remove the key");
    }
    rc = reader_check_keys(reader, &at, object, keys, count);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < problem->param_count; i++) {
        if (problem->param[i].type != PARAM_INT) {
            continue;
        }
        json_t *range = NULL;
        struct json_path here;
        rc = reader_get(reader, &at, object, problem->param[i].name, KIND_OBJECT, &range, &here);
        if (rc != 0) {
            return rc;
        }
        rc = read_range(reader, &here, range, &problem->hidden[i]);
        if (rc != 0) {
            return rc;
        }
    }
    problem->has_hidden = true;
    struct shape_case drawn[PROBLEM_HIDDEN_CASES];
    if (problem_hidden_cases(problem, 0, drawn) == 0) {
        return reader_fail(reader, &at,
                           "none of the shapes drawn from the ranges evaluates; narrow them");
    }
    return 0;
}

int problem_read_cases(const struct reader *reader, const struct json_path *where,
                       const json_t *root)
{
    static const char *const keys[] = {"check", "bench", "hidden"};
    json_t *cases = NULL;
    struct json_path here;
    int rc = reader_get(reader, where, root, "cases", KIND_OBJECT, &cases, &here);
    if (rc != 0) {
        return rc;
    }
    rc = reader_check_keys(reader, &here, cases, keys, ARRAY_LEN(keys));
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
    return read_hidden(reader, &here, cases);
}
