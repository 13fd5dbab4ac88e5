// Two passes over each row: sum of squares, scaling.
#include <math.h>

void rmsnorm(const float *x, const float *w, float *y, int64_t R, int64_t N, double eps)
{
    for (int64_t r = 0; r < R; r++) {
        const float *in = x + r * N;
        float *out = y + r * N;
        float sum = 0;
        for (int64_t i = 0; i < N; i++)
            sum += in[i] * in[i];
        float inverse = 1 / sqrtf(sum / (float)N + (float)eps);
        for (int64_t i = 0; i < N; i++)
            out[i] = in[i] * inverse * w[i];
    }
}
