#include <math.h>
void reference(const float *x, double *y, double *y_scale, int64_t N)
{
    for (int64_t i = 0; i < N; i++) {
        y[i] = y_scale[i] = 0;
        for (int64_t j = 0; j < 16; j++) {
            y[i] += x[i + j];
            y_scale[i] += fabs((double)x[i + j]);
        }
    }
}
