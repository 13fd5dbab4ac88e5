// Root-mean-square normalisation in double precision. Every term of the sum is positive, so each
// operation has a relative error and the error scale is |y|.
#include <math.h>

void reference(const float *x, const float *w, double *y, double *y_scale, int64_t R, int64_t N,
               double eps)
{
    for (int64_t r = 0; r < R; r++) {
        const float *in = x + r * N;
        double sum = 0;
        for (int64_t i = 0; i < N; i++)
            sum += (double)in[i] * in[i];
        double inverse = 1 / sqrt(sum / (double)N + eps);
        for (int64_t i = 0; i < N; i++) {
            y[r * N + i] = in[i] * inverse * w[i];
            y_scale[r * N + i] = fabs(y[r * N + i]);
        }
    }
}
