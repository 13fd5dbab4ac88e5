// expect: wrong
// problem: reduce_sum
// Accumulates in half precision.
#include <cuda_fp16.h>
//@ scratch total bytes=16 init=zero
//@ launch add grid=(256) block=(256) args=(x, total, N)
//@ launch finish grid=(1) block=(1) args=(total, y)
extern "C" __global__ void add(const float *x, float *total, int N)
{
    __half sum = __float2half(0);

    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += 65536) {
        sum = __hadd(sum, __float2half(x[i]));
    }
    atomicAdd(total, __half2float(sum));
}
extern "C" __global__ void finish(const float *total, float *y)
{
    *y = *total;
}
