// Inclusive prefix sum in double precision; the error scale is the prefix sum of absolute values.
#include <math.h>

void reference(const float *x, double *y, double *y_scale, int64_t N)
{
    double sum = 0, scale = 0;
    for (int64_t i = 0; i < N; i++) {
        sum += x[i];
        scale += fabs(x[i]);
        y[i] = sum;
        y_scale[i] = scale;
    }
}
