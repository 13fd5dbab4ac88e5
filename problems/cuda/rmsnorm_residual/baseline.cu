//@ launch rmsnorm_residual grid=(R) block=(256) args=(x, h, w, y, N, eps)
#include <cuda_bf16.h>

// One block per row: add and sum up the squares, then read the sums again and normalise.
extern "C" __global__ void rmsnorm_residual(const __nv_bfloat16 *x, __nv_bfloat16 *h,
                                            const __nv_bfloat16 *w, __nv_bfloat16 *y, int N,
                                            float eps)
{
    __shared__ float part[8];
    long long row = (long long)blockIdx.x * N;
    float sum = 0, factor;

    for (int i = threadIdx.x; i < N; i += 256) {
        float value = __bfloat162float(x[row + i]) + __bfloat162float(h[row + i]);
        h[row + i] = __float2bfloat16(value);
        sum += value * value;
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x % 32 == 0) {
        part[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    sum = 0;
    for (int i = 0; i < 8; i++) {
        sum += part[i];
    }
    factor = rsqrtf(sum / N + eps);
    for (int i = threadIdx.x; i < N; i += 256) {
        float value = __bfloat162float(h[row + i]) * factor * __bfloat162float(w[i]);
        y[row + i] = __float2bfloat16(value);
    }
}
