#include <math.h>

void reference(const float *x, const float *y, double *z, double *z_scale, int64_t n, double a)
{
    for (int64_t i = 0; i < n; i++) {
        z[i] = a * x[i] + y[i];
        z_scale[i] = fabs(a * x[i]) + fabs((double)y[i]);
    }
}
