//@ tune PASSES in (0, 1, 2)
//@ tune DEGREE in (0, 3, 6, 7) if DEGREE != 3 || PASSES == 0
//@ tune VW in (1, 4, 8, 16) if DEGREE > 0 || VW == 1
//@ tune UNROLL in (1, 2, 4, 8) if DEGREE != 3 || UNROLL <= 2
//@ tune DIVIDE in (0, 1)
//@ tune TAIL in (0, 1) if TAIL == 0 || (VW > 1 && (PASSES > 0 || DIVIDE == 0))
// Row softmax.
// PASSES 0: maximum; exponentials, stored and summed; scaling in place.
//        1: maximum and sum in one pass, the sum rescaled when the maximum grows; exponentials,
//           scaled.
//        2: maximum; sum of exponentials; exponentials again, scaled.
// DEGREE of the polynomial for exp on [-ln 2 / 2, ln 2 / 2]; 0 calls expf.
// VW floats in a vector, UNROLL independent maxima and sums.
// DIVIDE each element by the sum instead of multiplying by its inverse.
// TAIL of the last pass: 0 a padded vector, 1 the last full vector of the row once more.
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define STEP (VW * UNROLL)

typedef float vec __attribute__((vector_size(4 * VW), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(4 * VW), aligned(4), may_alias));

_Static_assert(STEP <= (PASSES == 1 ? 32 : 64),
               "the independent maxima and sums do not fit the registers");

INLINE vec load(const float *p)
{
    return *(const vec *)p;
}

INLINE void store(float *p, vec v)
{
    *(vec *)p = v;
}

INLINE vec splat(float s)
{
    return s - (vec){0};
}

INLINE vec greater(vec a, vec b)
{
    ints m = a > b;
    return (vec)(((ints)a & m) | ((ints)b & ~m));
}

INLINE vec exp_of(vec x)
{
#if DEGREE == 0
    return (vec){expf(x[0])};
#else
    // The bound keeps padding finite; the large constant leaves the integer in the low bits.
    x = greater(x, splat(-87.0f));
    vec shifted = x * 1.44269504f + 12582912.0f;
    vec n = shifted - 12582912.0f;
    vec r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
#if DEGREE == 7
    vec p = 1.0f / 720 + r * (1.0f / 5040);
    p = 1.0f / 120 + r * p;
#elif DEGREE == 6
    vec p = 1.0f / 120 + r * (1.0f / 720);
#endif
#if DEGREE >= 6
    p = 1.0f / 24 + r * p;
    p = 1.0f / 6 + r * p;
#else
    vec p = splat(1.0f / 6);
#endif
    p = 0.5f + r * p;
    p = 1.0f + r * p;
    p = 1.0f + r * p;
    return p * (vec)(((ints)shifted << 23) + 0x3f800000);
#endif
}

// A vector of the last count < VW elements, the rest of it filled.
INLINE vec load_part(const float *p, int64_t count, float fill)
{
    float lane[VW];
    for (int l = 0; l < VW; l++)
        lane[l] = fill;
    memcpy(lane, p, (size_t)count * sizeof(float));
    return load(lane);
}

INLINE float sum_of(const vec *part)
{
    float sum = 0;
    for (int u = 0; u < UNROLL; u++) {
        for (int l = 0; l < VW; l++)
            sum += part[u][l];
    }
    return sum;
}

INLINE float max_of(const vec *part)
{
    float max = part[0][0];
    for (int u = 0; u < UNROLL; u++) {
        for (int l = 0; l < VW; l++)
            max = part[u][l] > max ? part[u][l] : max;
    }
    return max;
}

#if PASSES == 1
// Maximum and sum together.
INLINE float measure(const float *in, float *out, int64_t N, float *ret_max)
{
    (void)out;
    vec max[UNROLL], sum[UNROLL];
    for (int u = 0; u < UNROLL; u++) {
        max[u] = splat(in[0]);
        sum[u] = splat(0);
    }
    int64_t i = 0;
    for (; i + STEP <= N; i += STEP) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) {
            vec x = load(in + i + u * VW);
            vec grown = greater(max[u], x);
            sum[u] = sum[u] * exp_of(max[u] - grown) + exp_of(x - grown);
            max[u] = grown;
        }
    }
    for (; i < N; i += VW) {
        int64_t count = N - i < VW ? N - i : VW;
        vec x = load_part(in + i, count, -INFINITY);
        vec grown = greater(max[0], x);
        sum[0] = sum[0] * exp_of(max[0] - grown) + exp_of(x - grown);
        max[0] = grown;
    }
    *ret_max = max_of(max);
    for (int u = 0; u < UNROLL; u++)
        sum[u] *= exp_of(max[u] - *ret_max);
    return sum_of(sum);
}
#else
INLINE float measure(const float *in, float *out, int64_t N, float *ret_max)
{
    vec part[UNROLL];
    for (int u = 0; u < UNROLL; u++)
        part[u] = splat(in[0]);
    int64_t i = 0;
    for (; i + STEP <= N; i += STEP) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++)
            part[u] = greater(load(in + i + u * VW), part[u]);
    }
    for (; i < N; i++)
        part[0] = greater(splat(in[i]), part[0]);
    float max = *ret_max = max_of(part);

    for (int u = 0; u < UNROLL; u++)
        part[u] = splat(0);
    for (i = 0; i + STEP <= N; i += STEP) {
#pragma GCC unroll 8
        for (int u = 0; u < UNROLL; u++) {
            vec e = exp_of(load(in + i + u * VW) - max);
            part[u] += e;
            if (PASSES == 0)
                store(out + i + u * VW, e);
        }
    }
    for (; i < N; i += VW) {
        int64_t count = N - i < VW ? N - i : VW;
        vec e = exp_of(load_part(in + i, count, -INFINITY) - max);
        part[0] += e;
        if (PASSES == 0)
            memcpy(out + i, &e, (size_t)count * sizeof(float));
    }
    return sum_of(part);
}
#endif

INLINE vec scaled(vec v, float max, float sum, float inverse)
{
    if (PASSES > 0)
        v = exp_of(v - max);
    return DIVIDE ? v / sum : v * inverse;
}

void softmax(const float *x, float *y, int64_t R, int64_t N)
{
    for (int64_t r = 0; r < R; r++) {
        const float *in = x + r * N;
        float *out = y + r * N, max;
        float sum = measure(in, out, N, &max), inverse = 1 / sum;
        const float *from = PASSES == 0 ? out : in;
        int64_t i = 0;
        for (; i + VW <= N; i += VW)
            store(out + i, scaled(load(from + i), max, sum, inverse));
        if (i < N && TAIL == 1 && N >= VW) {
            i = N - VW;
            store(out + i, scaled(load(from + i), max, sum, inverse));
        } else if (i < N) {
            vec v = scaled(load_part(from + i, N - i, max), max, sum, inverse);
            memcpy(out + i, &v, (size_t)(N - i) * sizeof(float));
        }
    }
}
