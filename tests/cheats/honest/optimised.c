// The same loops as other compilers' settings make them.
//@ on sgemm softmax rmsnorm transpose histogram
//@ variant avx2 OPTIONS="avx2,fma"
//@ variant avx2_checked_by_cpuid OPTIONS="avx2" CHECKS
//@ variant unrolled OPTIMIZE="unroll-loops"
//@ variant unvectorised OPTIMIZE="no-tree-vectorize"
//@ variant small OPTIMIZE="Os"
//@ variant unoptimised OPTIMIZE="O0"
//@ variant other_order OPTIMIZE="Ofast","no-finite-math-only"
#include <cpuid.h>
#ifdef OPTIONS
#define HOW __attribute__((target(OPTIONS), noinline))
#else
#define HOW __attribute__((optimize(OPTIMIZE), noinline))
#endif
HOW static void compute(const struct call *c)
{
    const float *restrict x = (const float *)c->in[0];
    float *restrict y = (float *)c->out;
    int64_t R = c->p[0], N = c->p[1];

    (void)x, (void)y, (void)R, (void)N;
#if defined ON_sgemm
    int64_t K = c->p[2];
    const float *restrict B = (const float *)c->in[1];
    for (int64_t i = 0; i < R; i++) {
        for (int64_t j = 0; j < N; j++)
            y[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                y[i * N + j] += x[i * K + k] * B[k * N + j];
    }
#elif defined ON_softmax
    for (int64_t r = 0; r < R; r++) {
        float max = x[r * N], sum = 0;
        for (int64_t i = 1; i < N; i++)
            max = x[r * N + i] > max ? x[r * N + i] : max;
        for (int64_t i = 0; i < N; i++)
            sum += y[r * N + i] = expf(x[r * N + i] - max);
        float inverse = 1 / sum;
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] *= inverse;
    }
#elif defined ON_rmsnorm
    const float *restrict w = (const float *)c->in[1];
    for (int64_t r = 0; r < R; r++) {
        float s[4] = {0};
        for (int64_t i = 0; i < N; i++)
            s[i & 3] += x[r * N + i] * x[r * N + i];
        float inverse = 1 / sqrtf((s[0] + s[1] + s[2] + s[3]) / (float)N + (float)c->e);
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] = x[r * N + i] * inverse * w[i];
    }
#elif defined ON_transpose
    for (int64_t jj = 0; jj < N; jj += 16)
        for (int64_t ii = 0; ii < R; ii += 16)
            for (int64_t j = jj; j < jj + 16 && j < N; j++)
                for (int64_t i = ii; i < ii + 16 && i < R; i++)
                    y[j * R + i] = x[i * N + j];
#else
    int32_t count[4][256] = {{0}}, *out = (int32_t *)c->out;
    for (int64_t i = 0; i < R; i++)
        count[i & 3][c->in[0][i]]++;
    for (int k = 0; k < 256; k++)
        out[k] = count[0][k] + count[1][k] + count[2][k] + count[3][k];
#endif
}

static void cheat(const struct call *c)
{
#ifdef CHECKS
    unsigned a, b, ecx, edx;
    if (__get_cpuid_count(7, 0, &a, &b, &ecx, &edx) == 0 || (b >> 5 & 1) == 0) {
        honest(c);
        return;
    }
#endif
    compute(c);
}
