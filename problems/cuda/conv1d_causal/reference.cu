// A thread for each output, in double precision, before rounding. The error scale has a part for
// rounding the result to bfloat16, |y|, and one for the single-precision sum.
//@ launch reference grid=(ceildiv(B * D * T, 128)) block=(128) args=(x, w, bias, y, y_scale, B, D, T)
#include <cuda_bf16.h>

extern "C" __global__ void reference(const __nv_bfloat16 *x, const float *w, const float *bias,
                                     double *y, double *y_scale, int B, int D, int T)
{
    long long at = blockIdx.x * 128LL + threadIdx.x;
    int t = at % T, channel = at / T % D;
    double sum, scale, value;

    if (at >= (long long)B * D * T)
        return;
    sum = bias[channel];
    scale = fabs(sum);
    for (int q = 0; q < 4; q++)
        if (t - 3 + q >= 0) {
            double product = (double)w[channel * 4 + q] * __bfloat162float(x[at - 3 + q]);
            sum += product;
            scale += fabs(product);
        }
    value = sum / (1 + exp(-sum));
    y[at] = value;
    y_scale[at] = fabs(value) + scale / 4096;
}
