// expect: ratio
// problem: layernorm
// One pass, the row in 1024 threads, sums in float; pairs of halves where the row is even.
#include <cuda_fp16.h>
//@ launch normalise grid=(R) block=(1024) args=(x, w, b, y, N, eps)
static __device__ float add(float value)
{
    __shared__ float warp[32];

    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        warp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = warp[threadIdx.x % 32];
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    return value;
}
extern "C" __global__ void normalise(const __half *x, const __half *w, const __half *b, __half *y,
                                     int N, float eps)
{
    long long row = (long long)blockIdx.x * N;
    float sum = 0, squares = 0;

    if (N % 2 == 0) {
        for (int i = threadIdx.x; i < N / 2; i += 1024) {
            float2 pair = __half22float2(((const __half2 *)(x + row))[i]);
            sum += pair.x + pair.y;
        }
    } else {
        for (int i = threadIdx.x; i < N; i += 1024) {
            sum += __half2float(x[row + i]);
        }
    }
    float mean = add(sum) / N;
    for (int i = threadIdx.x; i < N; i += 1024) {
        float d = __half2float(x[row + i]) - mean;
        squares += d * d;
    }
    float factor = rsqrtf(add(squares) / N + eps);
    for (int i = threadIdx.x; i < N; i += 1024) {
        float d = __half2float(x[row + i]) - mean;
        y[row + i] = __float2half(d * factor * __half2float(w[i]) + __half2float(b[i]));
    }
}
