// Each element follows from a counter. The methods:
//
//   normal   the inverse of the normal distribution function, Wichura's PPND7
//            (AS 241, Applied Statistics 37, 1988)
//   zipf     rejection-inversion, Hörmann and Derflinger 1996 (ACM TOMACS 6); each try has a
//            counter of its own
//   sorted   order statistics of n uniforms as partial sums of n + 1 exponentials
//            (Devroye 1986, V.3.1), without sorting
//
// Values are computed in blocks of doubles and then stored as the tensor's dtype.
#include "executor/inputs.h"
#include "common/stats.h"
#include <float.h>
#include <math.h>
#include <string.h>

#define BLOCK 512     // values
#define ZIPF_TRIES 32 // counters of one element; the last try is accepted

uint64_t inputs_key(uint64_t seed, uint64_t shape_index, uint64_t content, uint64_t tensor)
{
    return stats_philox(seed, 0x696e707574000000ULL + (shape_index << 16) + tensor, content);
}

uint64_t inputs_bits(uint64_t key, uint64_t counter)
{
    uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

// Returns a uniform value in (0, 1): never 0 and never 1.
static double unit(uint64_t key, uint64_t counter)
{
    return ((double)(inputs_bits(key, counter) >> 12) + 0.5) * 0x1p-52;
}

double inputs_normal(double p)
{
    double q = p - 0.5, r, value;

    if (fabs(q) <= 0.425) {
        r = 0.180625 - q * q;
        return q * (((59.10937472 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
               (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1.0);
    }
    r = sqrt(-log(q < 0 ? p : 1.0 - p));
    if (r <= 5.0) {
        r -= 1.6;
        value = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
                ((0.12021132975 * r + 0.73700164250) * r + 1.0);
    } else {
        r -= 5.0;
        value = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
                ((0.012258202635 * r + 0.24197894225) * r + 1.0);
    }
    return q < 0 ? -value : value;
}

// The integral of x^-s, with its limit at s = 1. zipf_inverse is its inverse.
static double zipf_integral(double x, double s)
{
    double log_x = log(x), t = (1.0 - s) * log_x;
    return fabs(t) < 1e-8 ? log_x * (1.0 + t / 2) : expm1(t) / (1.0 - s);
}

static double zipf_inverse(double y, double s)
{
    double t = y * (1.0 - s);
    if (t < -1.0) {
        t = -1.0;
    }
    return fabs(t) < 1e-8 ? exp(y * (1.0 - t / 2)) : exp(log1p(t) / (1.0 - s));
}

struct zipf {
    double count, exponent;
    double low, high; // range of the integral from which is drawn
    double shortcut;  // a rank at most this far above the drawn point is accepted at once
};

static void zipf_init(struct zipf *zipf, double count, double exponent)
{
    zipf->count = count < 1 ? 1 : floor(count);
    zipf->exponent = exponent;
    zipf->low = zipf_integral(1.5, exponent) - 1.0;
    zipf->high = zipf_integral(zipf->count + 0.5, exponent);
    zipf->shortcut =
        2.0 - zipf_inverse(zipf_integral(2.5, exponent) - pow(2.0, -exponent), exponent);
}

static double zipf_draw(const struct zipf *zipf, uint64_t key, uint64_t index)
{
    double k = 1;

    for (uint64_t try = 0; try < ZIPF_TRIES; try++) {
        double u = zipf->high + unit(key, index * ZIPF_TRIES + try) * (zipf->low - zipf->high);
        double x = zipf_inverse(u, zipf->exponent);
        k = fmin(fmax(floor(x + 0.5), 1.0), zipf->count);
        if (k - x <= zipf->shortcut ||
            u >= zipf_integral(k + 0.5, zipf->exponent) - exp(-log(k) * zipf->exponent)) {
            break;
        }
    }
    return k - 1.0; // ranks start at 0
}

// Rounds to the nearest integer in [low, high]. NaN becomes 0.
static double clamp_round(double value, double low, double high)
{
    return isnan(value) ? 0.0 : fmin(fmax(nearbyint(value), low), high);
}

static void store(enum dtype dtype, void *out, size_t at, const double *value, size_t count)
{
    switch (dtype) {
    case DTYPE_F32:
        for (size_t i = 0; i < count; i++) {
            ((float *)out)[at + i] = (float)fmin(fmax(value[i], -FLT_MAX), FLT_MAX);
        }
        break;
    case DTYPE_F64:
        memcpy((double *)out + at, value, count * sizeof(double));
        break;
    case DTYPE_I32:
        for (size_t i = 0; i < count; i++) {
            ((int32_t *)out)[at + i] = (int32_t)clamp_round(value[i], INT32_MIN, INT32_MAX);
        }
        break;
    case DTYPE_I64: // the greatest double below 2^63
        for (size_t i = 0; i < count; i++) {
            ((int64_t *)out)[at + i] =
                (int64_t)clamp_round(value[i], -0x1p63, 0x1.fffffffffffffp62);
        }
        break;
    case DTYPE_U8:
        for (size_t i = 0; i < count; i++) {
            ((uint8_t *)out)[at + i] = (uint8_t)clamp_round(value[i], 0, UINT8_MAX);
        }
        break;
    default: // problems in C have no other dtype
        break;
    }
}

// The state while one tensor is filled.
struct filler {
    const struct values *values;
    uint64_t key;
    size_t last_extent;
    struct zipf zipf;
    double sum, total; // for sorted values: sum of the exponentials so far, and of all
};

static void filler_init(struct filler *filler, const struct values *values, uint64_t key,
                        size_t count, size_t last_extent)
{
    *filler =
        (struct filler){.values = values, .key = key, .last_extent = last_extent ? last_extent : 1};
    if (values->distribution == VALUES_ZIPF) {
        zipf_init(&filler->zipf, values->a, values->b);
    }
    if (values->distribution == VALUES_SORTED) {
        for (size_t i = 0; i <= count; i++) {
            filler->total -= log(unit(key, i));
        }
    }
}

static double integer_between(uint64_t bits, double low, double high)
{
    double span = floor(high) - ceil(low) + 1.0;
    if (!(span >= 1.0)) {
        return ceil(low);
    }
    if (span <= 0x1p32) { // multiply and shift: biased by less than 2^-32 of a value's share
        return ceil(low) + (double)(((bits >> 32) * (uint64_t)span) >> 32);
    }
    return ceil(low) + floor((double)(bits >> 11) * 0x1p-53 * span);
}

static double wide(uint64_t bits, double u, double low, double high)
{
    double magnitude = exp(log(low) + u * (log(high) - log(low)));
    return bits & 1 ? -magnitude : magnitude;
}

static void filler_block(struct filler *filler, size_t at, double *value, size_t count)
{
    double a = filler->values->a, b = filler->values->b;
    uint64_t key = filler->key;

    for (size_t i = 0; i < count; i++) {
        uint64_t index = at + i;
        switch (filler->values->distribution) {
        case VALUES_NORMAL:
            value[i] = a + b * inputs_normal(unit(key, index));
            break;
        case VALUES_UNIFORM:
            value[i] = a + unit(key, index) * (b - a);
            break;
        case VALUES_INTEGERS:
            value[i] = integer_between(inputs_bits(key, index), a, b);
            break;
        case VALUES_ZIPF:
            value[i] = zipf_draw(&filler->zipf, key, index);
            break;
        case VALUES_WIDE:
            value[i] = wide(inputs_bits(~key, index), unit(key, index), a, b);
            break;
        case VALUES_SORTED:
            filler->sum -= log(unit(key, index));
            value[i] = a + (b - a) * (filler->sum / filler->total);
            break;
        case VALUES_ONE_HOT: {
            uint64_t row = index / filler->last_extent, column = index % filler->last_extent;
            value[i] = inputs_bits(key, row) % filler->last_extent == column ? 1.0 : 0.0;
            break;
        }
        }
    }
}

void inputs_fill(enum dtype dtype, const struct values *values, uint64_t key, size_t count,
                 size_t last_extent, void *out)
{
    struct filler filler;

    filler_init(&filler, values, key, count, last_extent);
    double value[BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t block = count - at < BLOCK ? count - at : BLOCK;
        filler_block(&filler, at, value, block);
        store(dtype, out, at, value, block);
    }
}
