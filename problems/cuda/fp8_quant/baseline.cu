//@ launch fp8_quant grid=(ceildiv(R*ceildiv(N, 128), 8)) block=(256) args=(x, q, scale, R, N, eps)
#include <cuda_bf16.h>
#include <cuda_fp8.h>

// A warp for each group of 128; a lane takes every 32nd element.
extern "C" __global__ void fp8_quant(const __nv_bfloat16 *x, __nv_fp8_e4m3 *q, float *scale, int R,
                                     int N, float eps)
{
    int groups = (N + 127) / 128, lane = threadIdx.x % 32;
    long long group = (long long)blockIdx.x * 8 + threadIdx.x / 32;
    long long row = group / groups;
    int first = (int)(group % groups) * 128;
    float value[4], most = 0, factor;

    if (row >= R)
        return;
    for (int i = 0; i < 4; i++) {
        int at = first + i * 32 + lane;
        value[i] = at < N ? __bfloat162float(x[row * N + at]) : 0.0f;
        most = fmaxf(most, fabsf(value[i]));
    }
    for (int step = 16; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    factor = fmaxf(most, eps) / 448.0f;
    for (int i = 0; i < 4; i++) {
        int at = first + i * 32 + lane;
        if (at < N)
            q[row * N + at] = __nv_fp8_e4m3(value[i] / factor);
    }
    if (lane == 0)
        scale[group] = factor;
}
