// One pass over the elements in blocks. A block is first tested as a whole, without branches. Only
// a block with a suspicious element is compared element by element.
#include "executor/cpu/verify.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define BLOCK 256 // elements

static void load(enum dtype dtype, const void *got, size_t at, size_t count, double *out)
{
    switch (dtype) {
    case DTYPE_F32:
        for (size_t i = 0; i < count; i++) {
            out[i] = (double)((const float *)got)[at + i];
        }
        break;
    case DTYPE_F64:
        memcpy(out, (const double *)got + at, count * sizeof(double));
        break;
    case DTYPE_I32:
        for (size_t i = 0; i < count; i++) {
            out[i] = ((const int32_t *)got)[at + i];
        }
        break;
    case DTYPE_I64:
        for (size_t i = 0; i < count; i++) {
            out[i] = (double)((const int64_t *)got)[at + i];
        }
        break;
    case DTYPE_U8:
        for (size_t i = 0; i < count; i++) {
            out[i] = ((const uint8_t *)got)[at + i];
        }
        break;
    default: // problems in C have no other dtype
        break;
    }
}

static bool is_float(enum dtype dtype)
{
    return dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

// Whether y rounded to dtype is the same value: an equal number, NaN, or the same infinity.
static bool same_value(enum dtype dtype, double got, double y)
{
    double rounded = dtype == DTYPE_F32 ? (double)(float)y : y;
    return (isnan(got) && isnan(y)) || got == rounded || got == y;
}

static void compare_element(enum dtype dtype, double tolerance, size_t index, double got, double y,
                            double unit_scale, struct verify_outcome *ret)
{
    double error = fabs(got - y), ratio;
    bool special = isnan(got) || isinf(got) || isnan(y) || isinf(y);

    if (special) {
        ratio = same_value(dtype, got, y) ? 0.0 : INFINITY;
    } else {
        ratio = error == 0.0 ? 0.0 : unit_scale > 0.0 ? error / unit_scale : INFINITY;
    }
    if (ratio > ret->max_error) {
        ret->max_error = ratio;
    }
    if (ratio == 0.0 || (!special && error <= tolerance * unit_scale)) {
        return;
    }
    if (ret->wrong++ == 0) {
        ret->first = index;
        ret->got = got;
        ret->expected = y;
    }
}

void verify_tensor(enum dtype dtype, double tolerance, const void *got, const double *y,
                   const double *scale, size_t count, struct verify_outcome *ret)
{
    double u = dtype_roundoff(dtype), value[BLOCK], unit_scale[BLOCK];
    bool use_scale = is_float(dtype) || tolerance > 0.0;

    memset(ret, 0, sizeof(*ret));
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t block = count - at < BLOCK ? count - at : BLOCK;
        double worst = 0.0, sum = 0.0;

        load(dtype, got, at, block, value);
        for (size_t i = 0; i < block; i++) {
            unit_scale[i] = use_scale ? u * fabs(scale[at + i]) : 1.0;
        }
        // A quotient that is NaN (0/0, NaN, inf - inf) makes the sum NaN. Any other large quotient
        // shows in the maximum.
        for (size_t i = 0; i < block; i++) {
            double ratio = fabs(value[i] - y[at + i]) / unit_scale[i];
            worst = ratio > worst ? ratio : worst;
            sum += ratio;
        }
        if (isfinite(sum) && worst <= tolerance * (1.0 - 1e-9)) {
            ret->max_error = worst > ret->max_error ? worst : ret->max_error;
            continue;
        }
        for (size_t i = 0; i < block; i++) {
            compare_element(dtype, tolerance, at + i, value[i], y[at + i], unit_scale[i], ret);
        }
    }
}
