// Three passes over each row: maximum, exponentials and their sum, division.
#include <math.h>

void softmax(const float *x, float *y, int64_t R, int64_t N)
{
    for (int64_t r = 0; r < R; r++) {
        const float *in = x + r * N;
        float *out = y + r * N;
        float max = in[0];
        for (int64_t i = 1; i < N; i++)
            max = in[i] > max ? in[i] : max;
        float sum = 0;
        for (int64_t i = 0; i < N; i++) {
            out[i] = expf(in[i] - max);
            sum += out[i];
        }
        for (int64_t i = 0; i < N; i++)
            out[i] /= sum;
    }
}
