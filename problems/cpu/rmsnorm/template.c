//@ tune VW in (1, 4, 8, 16)
//@ tune UNROLL in (1, 2, 4, 8)
//@ tune ROWS in (1, 2, 4)
//@ tune DIVIDE in (0, 1)
//@ tune TAIL in (0, 1, 2) if TAIL == 0 || (VW > 1 && (TAIL == 1 || (ROWS == 1 && DIVIDE == 0)))
//@ tune NEWTON in (0, 1, 3) if NEWTON != 1 || (DIVIDE == 0 && TAIL == 0 && UNROLL <= 2)
// Root-mean-square normalisation, ROWS rows at a time.
// VW     floats in a vector, UNROLL independent sums per row.
// DIVIDE by the root instead of multiplying by its inverse.
// TAIL   0 does one by one what does not fill a vector, 1 does the last full vector of the row once
//        more in the scaling pass, 2 in both passes.
// NEWTON 0 is 1 / sqrtf, otherwise the integer estimate with that many Newton steps.
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define STEP (VW * UNROLL)

_Static_assert(16 >= ROWS * UNROLL, "more independent sums than registers");

typedef float vec __attribute__((vector_size(4 * VW), aligned(4), may_alias));

INLINE vec load(const float *p)
{
    return *(const vec *)p;
}

INLINE float inverse_root(float s)
{
    if (NEWTON == 0)
        return 1 / sqrtf(s);
    uint32_t bits;
    memcpy(&bits, &s, 4);
    bits = 0x5f3759df - (bits >> 1);
    float r;
    memcpy(&r, &bits, 4);
    for (int step = 0; step < NEWTON; step++)
        r = r * (1.5f - 0.5f * s * r * r);
    return r;
}

// The sums of squares of `rows` rows.
INLINE void squares(int rows, const float *in, int64_t N, float *ret_sum)
{
    vec part[ROWS][UNROLL];
    for (int r = 0; r < rows; r++) {
        ret_sum[r] = 0;
        for (int u = 0; u < UNROLL; u++)
            part[r][u] = (vec){0};
    }
    int64_t i = 0;
    for (; i + STEP <= N; i += STEP) {
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; u++) {
                vec v = load(in + r * N + i + u * VW);
                part[r][u] += v * v;
            }
        }
    }
    for (; i + VW <= N; i += VW) {
        for (int r = 0; r < rows; r++) {
            vec v = load(in + r * N + i);
            part[r][0] += v * v;
        }
    }
    for (int r = 0; r < rows; r++) {
        if (TAIL == 2 && i < N && N >= VW) {
            vec v = load(in + r * N + N - VW);
            part[r][0] += v * v;
        } else {
            for (int64_t j = i; j < N; j++)
                ret_sum[r] += in[r * N + j] * in[r * N + j];
        }
        for (int u = 0; u < UNROLL; u++) {
            for (int l = 0; l < VW; l++)
                ret_sum[r] += part[r][u][l];
        }
    }
}

// factor[r] is the inverse of the root, or the root with DIVIDE.
INLINE void scale_at(int rows, const float *in, const float *w, float *out, int64_t N, int64_t i,
                     const float *factor)
{
    vec weight = load(w + i);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        vec v = load(in + r * N + i);
        v = DIVIDE ? v / factor[r] * weight : v * factor[r] * weight;
        *(vec *)(out + r * N + i) = v;
    }
}

INLINE void normalise(int rows, const float *x, const float *w, float *y, int64_t N, float eps)
{
    float factor[ROWS];
    squares(rows, x, N, factor);
    for (int r = 0; r < rows; r++) {
        float s = factor[r] / (float)N + eps;
        factor[r] = inverse_root(s);
        if (DIVIDE)
            factor[r] *= s;
    }
    int64_t i = 0;
    for (; i + VW <= N; i += VW)
        scale_at(rows, x, w, y, N, i, factor);
    if (TAIL > 0 && i < N && N >= VW) {
        scale_at(rows, x, w, y, N, N - VW, factor);
        i = N;
    }
    for (; i < N; i++) {
        for (int r = 0; r < rows; r++)
            y[r * N + i] =
                DIVIDE ? x[r * N + i] / factor[r] * w[i] : x[r * N + i] * factor[r] * w[i];
    }
}

void rmsnorm(const float *x, const float *w, float *y, int64_t R, int64_t N, double eps)
{
    int64_t r = 0;
    for (; r + ROWS <= R; r += ROWS)
        normalise(ROWS, x + r * N, w, y + r * N, N, (float)eps);
    for (; r < R; r++)
        normalise(1, x + r * N, w, y + r * N, N, (float)eps);
}
