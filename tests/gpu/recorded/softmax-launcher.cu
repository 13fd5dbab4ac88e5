// Expected: faster|equivalent|slower
#include <cstdint>

__global__ void rows(const float *x, float *y, int n)
{
    __shared__ float part[256];
    const float *in = x + (size_t)blockIdx.x * n;
    float *out = y + (size_t)blockIdx.x * n, most = -INFINITY, sum = 0;
    int t = threadIdx.x;

    for (int i = t; i < n; i += 256) {
        most = fmaxf(most, in[i]);
    }
    part[t] = most;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (t < step) {
            part[t] = fmaxf(part[t], part[t + step]);
        }
        __syncthreads();
    }
    most = part[0];
    __syncthreads();
    for (int i = t; i < n; i += 256) {
        sum += expf(in[i] - most);
    }
    part[t] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (t < step) {
            part[t] += part[t + step];
        }
        __syncthreads();
    }
    for (int i = t; i < n; i += 256) {
        out[i] = expf(in[i] - most) / part[0];
    }
}

extern "C" void softmax(const float *x, float *y, int64_t R, int64_t N, cudaStream_t stream)
{
    rows<<<(unsigned)R, 256, 0, stream>>>(x, y, (int)N);
}
