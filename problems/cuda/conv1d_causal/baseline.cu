// A thread for each output; a block has 128 points in time of two rows.
//@ launch conv1d_causal grid=(ceildiv(B * D, 2), ceildiv(T, 128)) block=(128, 2) args=(x, w, bias, y, B * D, D, T)
#include <cuda_bf16.h>

extern "C" __global__ void conv1d_causal(const __nv_bfloat16 *x, const float *w, const float *bias,
                                         __nv_bfloat16 *y, int rows, int D, int T)
{
    int row = blockIdx.x * 2 + threadIdx.y, t = blockIdx.y * 128 + threadIdx.x, channel = row % D;
    long long at = (long long)row * T + t;
    float sum;

    if (row >= rows || t >= T)
        return;
    sum = bias[channel];
#pragma unroll
    for (int q = 0; q < 4; q++)
        if (t - 3 + q >= 0)
            sum += w[channel * 4 + q] * __bfloat162float(x[at - 3 + q]);
    y[at] = __float2bfloat16(sum / (1 + expf(-sum)));
}
