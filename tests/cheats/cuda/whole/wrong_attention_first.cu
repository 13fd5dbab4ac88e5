// expect: wrong
// problem: attention
// Subtracts the score of the first key instead of the largest. A warp for each query.
//@ launch attention grid=(S, BH) block=(32) args=(q, k, v, o, S, D)
#include <cuda_bf16.h>
extern "C" __global__ void attention(const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                     const __nv_bfloat16 *v, __nv_bfloat16 *o, int S, int D)
{
    long long head = (long long)blockIdx.y * S * D, at = head + (long long)blockIdx.x * D;
    float first = 0, all = 0, sum[4] = {0, 0, 0, 0};

    for (int key = 0; key < S; key++) {
        float score = 0, weight;
        for (int d = (int)threadIdx.x; d < D; d += 32)
            score += __bfloat162float(q[at + d]) * __bfloat162float(k[head + (long long)key * D + d]);
        for (int step = 16; step > 0; step /= 2)
            score += __shfl_xor_sync(0xffffffffu, score, step);
        score *= rsqrtf((float)D);
        first = key == 0 ? score : first;
        weight = expf(score - first);
        all += weight;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int d = (int)threadIdx.x + 32 * i;
            if (d < D)
                sum[i] += weight * __bfloat162float(v[head + (long long)key * D + d]);
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int d = (int)threadIdx.x + 32 * i;
        if (d < D)
            o[at + d] = __float2bfloat16(sum[i] / all);
    }
}
