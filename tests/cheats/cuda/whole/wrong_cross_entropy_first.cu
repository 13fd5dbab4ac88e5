// expect: wrong
// problem: cross_entropy
// Subtracts the first logit of a row instead of the largest.
#include <cuda_bf16.h>
//@ launch cross_entropy grid=(R) block=(256) args=(logit, target, upstream, loss, dlogit, V)
extern "C" __global__ void cross_entropy(const __nv_bfloat16 *logit, const int *target,
                                         const float *upstream, float *loss, __nv_bfloat16 *dlogit,
                                         int V)
{
    __shared__ float part[8];
    long long row = blockIdx.x;
    const __nv_bfloat16 *x = logit + row * V;
    int hit = target[row] % V;
    float first = __bfloat162float(x[0]), sum = 0, factor;

    for (int i = (int)threadIdx.x; i < V; i += 256)
        sum += expf(__bfloat162float(x[i]) - first);
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < 8; i++)
        sum += part[i];
    factor = upstream[row] / sum;
    for (int i = (int)threadIdx.x; i < V; i += 256) {
        float y = expf(__bfloat162float(x[i]) - first) * factor;
        dlogit[row * V + i] = __float2bfloat16(i == hit ? y - upstream[row] : y);
    }
    if (threadIdx.x == 0)
        loss[row] = first + logf(sum) - __bfloat162float(x[hit]);
}
