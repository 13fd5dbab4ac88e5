// expect: wrong
// problem: layernorm
// Takes the variance of every row from its first half.
#include <cuda_fp16.h>
//@ launch normalise grid=(R) block=(32) args=(x, w, b, y, N, eps)
static __device__ float add(float value)
{
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    return value;
}
extern "C" __global__ void normalise(const __half *x, const __half *w, const __half *b, __half *y,
                                     int N, float eps)
{
    const __half *in = x + (long long)blockIdx.x * N;
    int half = N > 1 ? N / 2 : 1;
    float sum = 0, squares = 0;

    for (int i = threadIdx.x; i < N; i += 32) {
        sum += __half2float(in[i]);
    }
    float mean = add(sum) / N;
    for (int i = threadIdx.x; i < half; i += 32) {
        float d = __half2float(in[i]) - mean;
        squares += d * d;
    }
    float factor = rsqrtf(add(squares) / half + eps);
    for (int i = threadIdx.x; i < N; i += 32) {
        float d = __half2float(in[i]) - mean;
        y[(long long)blockIdx.x * N + i] =
            __float2half(d * factor * __half2float(w[i]) + __half2float(b[i]));
    }
}
