// expect: wrong
// Accumulates in half precision.
#include <cuda_fp16.h>
//@ launch rowsum grid=(rows) block=(32) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __half sum = __float2half(0);

    for (int i = threadIdx.x; i < cols; i += 32) {
        sum = __hadd(sum, __float2half(x[(long long)blockIdx.x * cols + i]));
    }
    for (int step = 16; step > 0; step /= 2) {
        sum = __hadd(sum, __shfl_down_sync(0xffffffffu, sum, step));
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = __half2float(sum);
    }
}
