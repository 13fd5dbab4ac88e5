// expect: ratio
// problem: rowsum
// Rows come into shared memory by cp.async, four bytes at a time, in steps of 1024 elements.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
#include <cuda_pipeline.h>
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __shared__ float tile[1024];
    __shared__ float warp[8];
    float sum = 0;

    for (int start = 0; start < cols; start += 1024) {
        for (int i = threadIdx.x; i < 1024 && start + i < cols; i += 256) {
            __pipeline_memcpy_async(&tile[i], &x[(long long)blockIdx.x * cols + start + i], 4);
        }
        __pipeline_commit();
        __pipeline_wait_prior(0);
        for (int i = threadIdx.x; i < 1024 && start + i < cols; i += 256) {
            sum += tile[i];
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x % 32 == 0) {
        warp[threadIdx.x / 32] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) {
            sum += warp[i];
        }
        y[blockIdx.x] = sum;
    }
}
