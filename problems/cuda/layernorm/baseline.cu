//@ launch layernorm grid=(R) block=(256) args=(x, w, b, y, N, eps)
#include <cuda_fp16.h>

// One block per row and three passes: mean, variance, results.
static __device__ float reduce(float *part, float value)
{
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    if (threadIdx.x % 32 == 0) {
        part[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = 0;
    for (int i = 0; i < 8; i++) {
        value += part[i];
    }
    __syncthreads();
    return value;
}

extern "C" __global__ void layernorm(const __half *x, const __half *w, const __half *b, __half *y,
                                     int N, float eps)
{
    __shared__ float part[8];
    long long row = (long long)blockIdx.x * N;
    float sum = 0, squares = 0, mean, factor;

    for (int i = threadIdx.x; i < N; i += 256) {
        sum += __half2float(x[row + i]);
    }
    mean = reduce(part, sum) / N;
    for (int i = threadIdx.x; i < N; i += 256) {
        float d = __half2float(x[row + i]) - mean;
        squares += d * d;
    }
    factor = rsqrtf(reduce(part, squares) / N + eps);
    for (int i = threadIdx.x; i < N; i += 256) {
        float d = __half2float(x[row + i]) - mean;
        y[row + i] = __float2half(d * factor * __half2float(w[i]) + __half2float(b[i]));
    }
}
