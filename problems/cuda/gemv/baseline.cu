//@ launch gemv grid=(ceildiv(M, 8)) block=(32, 8) args=(A, x, y, M, K)
#include <cuda_bf16.h>

// One warp per row.
extern "C" __global__ void gemv(const __nv_bfloat16 *A, const __nv_bfloat16 *x, float *y, int M,
                                int K)
{
    int row = (int)blockIdx.x * 8 + (int)threadIdx.y;
    float sum = 0;

    if (row >= M) {
        return;
    }
    A += (long long)row * K;
    for (int i = threadIdx.x; i < K; i += 32) {
        sum += __bfloat162float(A[i]) * __bfloat162float(x[i]);
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x == 0) {
        y[row] = sum;
    }
}
