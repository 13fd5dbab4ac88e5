// Row softmax in double precision.
//
// The error scale follows from the derivative. With d_j = x_j - max, a relative error of
// u (1 + |d_j|) in every exp(d_j) changes y_i by at most
//     u y_i (1 + |d_i| + sum_j y_j (1 + |d_j|)).
// It is proportional to y_i, so that the small probabilities of a row are judged as strictly as
// the large ones, but for TINY: what lies below the least float may be 0.
#include <math.h>

#define TINY 1e-30

void reference(const float *x, double *y, double *y_scale, int64_t R, int64_t N)
{
    for (int64_t r = 0; r < R; r++) {
        const float *in = x + r * N;
        double *out = y + r * N, *scale = y_scale + r * N;
        double max = in[0];
        for (int64_t i = 1; i < N; i++)
            max = in[i] > max ? in[i] : max;
        double sum = 0, weighted = 0;
        for (int64_t i = 0; i < N; i++) {
            out[i] = exp(in[i] - max);
            sum += out[i];
            weighted += out[i] * (1 + (max - in[i]));
        }
        for (int64_t i = 0; i < N; i++) {
            out[i] /= sum;
            scale[i] = out[i] * (1 + (max - in[i]) + weighted / sum) + TINY;
        }
    }
}
