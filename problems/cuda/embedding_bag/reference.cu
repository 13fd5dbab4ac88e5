//@ launch reference grid=(ceildiv(B*D, 128)) block=(128) args=(table, row, w, y, y_scale, B, L, D)
#include <cuda_bf16.h>

// One thread per element, in double precision.
extern "C" __global__ void reference(const __nv_bfloat16 *table, const int *row, const float *w,
                                     double *y, double *y_scale, int B, int L, int D)
{
    long long at = (long long)blockIdx.x * 128 + threadIdx.x, bag = at / D * L;
    double sum = 0, scale = 0;

    if (at >= (long long)B * D) {
        return;
    }
    for (int i = 0; i < L; i++) {
        __nv_bfloat16 element = table[(long long)row[bag + i] * D + at % D];
        double value = (double)__bfloat162float(element) * w[bag + i];
        sum += value;
        scale += fabs(value);
    }
    y[at] = sum;
    y_scale[at] = scale;
}
