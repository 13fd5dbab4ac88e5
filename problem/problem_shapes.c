// Design note. The numbers that follow from a problem and one set of parameters: element counts,
// work, a case's name, and the shapes that nobody knows beforehand. Everything is bounded before it
// is multiplied.
//
// Hidden shapes are a function of (problem, seed) alone: each attempt has a stream of the
// counter-based generator of its own. Four kinds are drawn, because defects of kernels hide in
// different places: the smallest extents (loops that never run), primes (nothing divides), odd
// numbers (half a vector remains), and one more or less than a multiple of 16 (a full vector and
// one element). A parameter whose range holds no number of the wanted kind takes any number of its
// range; so does one with "multiple", where the kind has to give way to the author's rule unless
// both can be met.
#include "common/stats.h"
#include "problem/problem.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS 16
#define SEARCH_MAX                                                                                 \
    1024 // multiples looked at around a draw; no gap between primes below 2^40 is longer

struct dtype_row {
    const char *name;   // in problem.json
    const char *c_name; // in C; NULL: C problems do not have it
    const char *cuda_name;
    size_t size;     // in bytes
    double roundoff; // u
};

static const struct dtype_row dtype_table[] = {
    [DTYPE_F32] = {"f32", "float", "float", 4, 0x1p-24},
    [DTYPE_F64] = {"f64", "double", "double", 8, 0x1p-53},
    [DTYPE_I32] = {"i32", "int32_t", "int", 4, 1.0},
    [DTYPE_I64] = {"i64", "int64_t", "long long", 8, 1.0},
    [DTYPE_U8] = {"u8", "uint8_t", "unsigned char", 1, 1.0},
    [DTYPE_F16] = {"f16", NULL, "__half", 2, 0x1p-11},
    [DTYPE_BF16] = {"bf16", NULL, "__nv_bfloat16", 2, 0x1p-8},
    [DTYPE_E4M3] = {"e4m3", NULL, "__nv_fp8_e4m3", 1, 0x1p-4},
    [DTYPE_E5M2] = {"e5m2", NULL, "__nv_fp8_e5m2", 1, 0x1p-3},
    [DTYPE_I8] = {"i8", NULL, "signed char", 1, 1.0},
};

static const char *const work_units[] = {
    [UNIT_F32] = "f32",   [UNIT_F64] = "f64", [UNIT_TF32] = "tf32", [UNIT_F16] = "f16",
    [UNIT_BF16] = "bf16", [UNIT_FP8] = "fp8", [UNIT_I8] = "i8",
};

size_t dtype_size(enum dtype dtype)
{
    return dtype_table[dtype].size;
}

const char *dtype_name(enum dtype dtype)
{
    return dtype_table[dtype].name;
}

const char *dtype_c_name(enum dtype dtype)
{
    return dtype_table[dtype].c_name;
}

const char *dtype_cuda_name(enum dtype dtype)
{
    return dtype_table[dtype].cuda_name;
}

double dtype_roundoff(enum dtype dtype)
{
    return dtype_table[dtype].roundoff;
}

const char *work_unit_name(enum work_unit unit)
{
    return work_units[unit];
}

// One axis, from 1 to the greatest number of elements a tensor may have.
static int extent_of(const struct problem *problem, size_t tensor, size_t axis,
                     const struct shape_case *shape, size_t *ret, struct err *err)
{
    const struct tensor *t = &problem->tensor[tensor];
    int64_t extent = 0;
    struct err inner = ERR_INIT;
    int rc = expr_eval(&extent, t->shape[axis], shape->i, &inner);
    if (rc != 0) {
        return err_set(err, rc, "shape[%zu] of tensor %s: %s; change the expression or the case",
                       axis, t->name, inner.text);
    }
    size_t most = PROBLEM_TENSOR_BYTES_MAX / dtype_size(t->dtype);
    if (extent < 1 || (uint64_t)extent > most) {
        return err_set(err, ERR_INVALID,
                       "shape[%zu] of tensor %s, \"%.200s\", is %" PRId64 "; it must be 1 to %zu",
                       axis, t->name, expr_text(t->shape[axis]), extent, most);
    }
    *ret = (size_t)extent;
    return 0;
}

int problem_elements(const struct problem *problem, size_t tensor, const struct shape_case *shape,
                     size_t *ret, struct err *err)
{
    const struct tensor *t = &problem->tensor[tensor];
    size_t most = PROBLEM_TENSOR_BYTES_MAX / dtype_size(t->dtype), elements = 1, extent = 0;
    for (size_t axis = 0; axis < t->rank; axis++) {
        int rc = extent_of(problem, tensor, axis, shape, &extent, err);
        if (rc != 0) {
            return rc;
        }
        if (extent > most / elements) {
            return err_set(err, ERR_INVALID,
                           "tensor %s has more than %zu elements (%zu bytes); use a smaller shape",
                           t->name, most, PROBLEM_TENSOR_BYTES_MAX);
        }
        elements *= extent;
    }
    *ret = elements;
    return 0;
}

int problem_last_extent(const struct problem *problem, size_t tensor,
                        const struct shape_case *shape, size_t *ret, struct err *err)
{
    size_t rank = problem->tensor[tensor].rank;
    if (rank > 0) {
        return extent_of(problem, tensor, rank - 1, shape, ret, err);
    }
    *ret = 1;
    return 0;
}

static int work_of(const struct expr *expr, const char *what, const struct shape_case *shape,
                   double *ret, struct err *err)
{
    int64_t value = 0;
    struct err inner = ERR_INIT;
    int rc = expr_eval(&value, expr, shape->i, &inner);
    if (rc != 0) {
        return err_set(err, rc, "work.%s: %s; change the expression or the case", what, inner.text);
    }
    if (value < 0) {
        return err_set(err, ERR_INVALID,
                       "work.%s, \"%.200s\", is %" PRId64 "; it must be 0 or more", what,
                       expr_text(expr), value);
    }
    *ret = (double)value;
    return 0;
}

int problem_work(const struct problem *problem, const struct shape_case *shape, double *ret_flops,
                 double *ret_bytes, struct err *err)
{
    double flops = 0.0, bytes = 0.0;
    int rc = work_of(problem->flops, "flops", shape, &flops, err);
    if (rc == 0) {
        rc = work_of(problem->bytes, "bytes", shape, &bytes, err);
    }
    if (rc != 0) {
        return rc;
    }
    *ret_flops = flops;
    *ret_bytes = bytes;
    return 0;
}

void problem_case_name(const struct problem *problem, const struct shape_case *shape,
                       struct strbuf *out)
{
    for (size_t i = 0; i < problem->param_count; i++) {
        const char *separator = i > 0 ? " " : "", *name = problem->param[i].name;
        if (problem->param[i].type == PARAM_INT) {
            strbuf_addf(out, "%s%s=%" PRId64, separator, name, shape->i[i]);
            continue;
        }
        char text[40];
        // The shortest of the two forms that reads back as the same number.
        snprintf(text, sizeof text, "%.15g", shape->f[i]);
        if (strtod(text, NULL) != shape->f[i]) {
            snprintf(text, sizeof text, "%.17g", shape->f[i]);
        }
        strbuf_addf(out, "%s%s=%s", separator, name, text);
    }
}

static bool is_prime(int64_t n)
{
    if (n < 4) {
        return n >= 2;
    }
    if (n % 2 == 0) {
        return false;
    }
    for (int64_t divisor = 3; divisor <= n / divisor; divisor += 2) {
        if (n % divisor == 0) {
            return false;
        }
    }
    return true;
}

static bool is_odd(int64_t n)
{
    return n % 2 != 0;
}

static bool is_beside_16(int64_t n)
{
    return n >= 15 && (n % 16 == 1 || n % 16 == 15);
}

static bool is_any(int64_t n)
{
    (void)n;
    return true;
}

// In the order of PROBLEM_HIDDEN_CASES; the first kind is drawn from the low end of each range.
static bool (*const hidden_kind[PROBLEM_HIDDEN_CASES])(int64_t) = {is_any, is_prime, is_odd,
                                                                   is_beside_16};

// A multiple in the range that is of this kind: the next one from a random place on, around the end
// of the range.
static int64_t draw(const struct hidden_range *range, size_t kind, struct stats_rng *rng)
{
    uint64_t first =
        ((uint64_t)range->min + (uint64_t)range->multiple - 1) / (uint64_t)range->multiple;
    uint64_t count = (uint64_t)range->max / (uint64_t)range->multiple - first + 1;
    uint64_t start = stats_rng_below(rng, kind == 0 && count > 4 ? 4 : count);
    for (uint64_t step = 0; step < count && step < SEARCH_MAX; step++) {
        int64_t value = (int64_t)(first + (start + step) % count) * range->multiple;
        if (hidden_kind[kind](value)) {
            return value;
        }
    }
    return (int64_t)(first + start) * range->multiple;
}

static bool evaluates(const struct problem *problem, const struct shape_case *shape)
{
    size_t elements = 0;
    double flops = 0.0, bytes = 0.0;
    for (size_t i = 0; i < problem->tensor_count; i++) {
        if (problem_elements(problem, i, shape, &elements, NULL) != 0) {
            return false;
        }
    }
    return problem_work(problem, shape, &flops, &bytes, NULL) == 0;
}

size_t problem_hidden_cases(const struct problem *problem, uint64_t seed,
                            struct shape_case out[static PROBLEM_HIDDEN_CASES])
{
    if (!problem->has_hidden) {
        return 0;
    }
    size_t count = 0;
    for (size_t kind = 0; kind < PROBLEM_HIDDEN_CASES; kind++) {
        bool found = false;
        for (size_t attempt = 0; attempt < ATTEMPTS && !found; attempt++) {
            struct shape_case shape = problem->check[0];
            shape.weight = 0.0;
            struct stats_rng rng;
            stats_rng_init(&rng, seed, kind * ATTEMPTS + attempt);
            for (size_t i = 0; i < problem->param_count; i++) {
                if (problem->param[i].type == PARAM_INT) {
                    shape.i[i] = draw(&problem->hidden[i], kind, &rng);
                }
            }
            found = evaluates(problem, &shape);
            if (found) {
                out[count++] = shape;
            }
        }
    }
    return count;
}
