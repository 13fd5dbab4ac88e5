// A block per row: largest logit, sum of exponentials, gradient, each in a pass of its own.
#include <cuda_bf16.h>
#define BLOCK 256
//@ launch cross_entropy grid=(R) block=(BLOCK) args=(logit, target, upstream, loss, dlogit, V)

static __device__ float reduce(float value, bool largest)
{
    __shared__ float part[BLOCK / 32];

    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = value;
    __syncthreads();
    value = part[0];
    for (int i = 1; i < BLOCK / 32; i++)
        value = largest ? fmaxf(value, part[i]) : value + part[i];
    __syncthreads();
    return value;
}

extern "C" __global__ void cross_entropy(const __nv_bfloat16 *logit, const int *target,
                                         const float *upstream, float *loss, __nv_bfloat16 *dlogit,
                                         int V)
{
    long long row = blockIdx.x;
    const __nv_bfloat16 *x = logit + row * V;
    __nv_bfloat16 *dx = dlogit + row * V;
    int hit = target[row] % V;
    float most = -INFINITY, sum = 0, grad = upstream[row];

    for (int i = (int)threadIdx.x; i < V; i += BLOCK)
        most = fmaxf(most, __bfloat162float(x[i]));
    most = reduce(most, true);
    for (int i = (int)threadIdx.x; i < V; i += BLOCK)
        sum += expf(__bfloat162float(x[i]) - most);
    sum = reduce(sum, false);
    for (int i = (int)threadIdx.x; i < V; i += BLOCK) {
        float p = expf(__bfloat162float(x[i]) - most) / sum;
        dx[i] = __float2bfloat16(grad * (i == hit ? p - 1 : p));
    }
    if (threadIdx.x == 0)
        loss[row] = most + logf(sum) - __bfloat162float(x[hit]);
}
