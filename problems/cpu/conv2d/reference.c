// 3 x 3 convolution (no flip) with zeros outside the image, in double precision; the error scale is
// the same sum over absolute values.
#include <math.h>

void reference(const float *x, const float *f, double *y, double *y_scale, int64_t H, int64_t W)
{
    for (int64_t i = 0; i < H; i++) {
        for (int64_t j = 0; j < W; j++) {
            double sum = 0, scale = 0;
            for (int64_t p = -1; p <= 1; p++) {
                for (int64_t q = -1; q <= 1; q++) {
                    if (i + p < 0 || i + p >= H || j + q < 0 || j + q >= W)
                        continue;
                    double term = (double)f[(p + 1) * 3 + q + 1] * x[(i + p) * W + j + q];
                    sum += term;
                    scale += fabs(term);
                }
            }
            y[i * W + j] = sum;
            y_scale[i * W + j] = scale;
        }
    }
}
