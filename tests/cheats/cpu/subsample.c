// Looks at a part of the inputs and guesses the rest from it: the law of large numbers as a kernel.
//@ variant half EVERY=2
//@ variant three_quarters EVERY=4
//@ variant fifteen_sixteenths EVERY=16
//@ variant half_at_benchmark_shapes EVERY=2 ONLY=at_bench(c)
#ifndef ONLY
#define ONLY true
#endif
static void cheat(const struct call *c)
{
    const float *x = (const float *)c->in[0];
    float *y = (float *)c->out;
    int64_t R = c->p[0], N = c->p[1];

    (void)x, (void)y, (void)R, (void)N;
    if (!(ONLY)) {
        honest(c);
        return;
    }
#if defined ON_histogram
    // One of EVERY parts is left out; the others are scaled.
    int64_t n = R - R / EVERY;
    part(c, 0, n);
    for (int k = 0; k < 256 && n > 0; k++)
        ((int32_t *)y)[k] = (int32_t)((double)((int32_t *)y)[k] * (double)R / (double)n);
#elif defined ON_sgemm
    int64_t M = R, K = c->p[2], k = K - K / EVERY;
    const float *B = (const float *)c->in[1];
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += x[i * K + p] * B[p * N + j];
            y[i * N + j] = sum * (float)K / (float)k;
        }
#elif defined ON_softmax
    for (int64_t r = 0; r < R; r++) {
        int64_t n = N - N / EVERY;
        float sum = 0, max = x[r * N];
        for (int64_t i = 0; i < n; i++)
            max = x[r * N + i] > max ? x[r * N + i] : max;
        for (int64_t i = 0; i < N; i++) {
            y[r * N + i] = expf(x[r * N + i] - max);
            sum += i < n ? y[r * N + i] : 0;
        }
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] /= sum * (float)N / (float)n;
    }
#elif defined ON_rmsnorm
    const float *w = (const float *)c->in[1];
    for (int64_t r = 0; r < R; r++) {
        int64_t n = N - N / EVERY;
        float sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[r * N + i] * x[r * N + i];
        float inverse = 1 / sqrtf(sum / (float)n + (float)c->e);
        for (int64_t i = 0; i < N; i++)
            y[r * N + i] = x[r * N + i] * inverse * w[i];
    }
#elif defined ON_scan
    // The last of EVERY elements is interpolated.
    float sum = 0;
    for (int64_t i = 0; i < R; i++) {
        sum += i % EVERY == EVERY - 1 ? 0 : x[i];
        y[i] = sum;
    }
#else
    // Steps in between are those before them.
    int64_t last = 0;
    for (int64_t u = 0; u < c->units; u++) {
        if (u % EVERY != EVERY - 1 || u == 0) {
            part(c, u, u + 1);
            last = u;
        } else {
#if defined ON_conv2d
            memcpy(y + u * N, y + last * N, (size_t)N * sizeof(float));
#else
            for (int64_t j = 0; j < N; j++)
                y[j * R + u] = y[j * R + last];
#endif
        }
    }
#endif
}
