// expect: wrong
// problem: softmax
// Writes what went through half precision.
#include <cuda_fp16.h>
//@ launch softmax grid=(R) block=(32) args=(x, y, N)
extern "C" __global__ void softmax(const float *x, float *y, int N)
{
    const float *in = x + (long long)blockIdx.x * N;
    float most = in[0], sum = 0;

    for (int i = threadIdx.x; i < N; i += 32) {
        most = fmaxf(most, in[i]);
    }
    for (int step = 16; step > 0; step /= 2) {
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
    }
    for (int i = threadIdx.x; i < N; i += 32) {
        sum += expf(in[i] - most);
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    for (int i = threadIdx.x; i < N; i += 32) {
        y[(long long)blockIdx.x * N + i] = __half2float(__float2half(expf(in[i] - most) / sum));
    }
}
