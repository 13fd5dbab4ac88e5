// Eight lanes for each query, 32 queries per block; 32 keys and values at a time in shared memory. Each
// lane has every eighth pair of a query's and of its result's elements, D at most 128.
#define QUERIES 32
#define KEYS 32
#define PAIRS 8
//@ launch attention grid=(ceildiv(S, QUERIES), BH) block=(8 * QUERIES) smem=8 * KEYS * D args=(q, k, v, o, S, D)
#include <cuda_bf16.h>

extern "C" __global__ void __launch_bounds__(256)
    attention(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v,
              __nv_bfloat16 *o, int S, int D)
{
    extern __shared__ float2 memory[];
    float2 *keys = memory, *values = memory + KEYS * D / 2;
    int t = threadIdx.x, lane = t % 8, query = blockIdx.x * QUERIES + t / 8, half = D / 2;
    const __nv_bfloat162 *q2 = (const __nv_bfloat162 *)q, *k2 = (const __nv_bfloat162 *)k;
    const __nv_bfloat162 *v2 = (const __nv_bfloat162 *)v;
    long long head = (long long)blockIdx.y * S * half;
    float scale = rsqrtf((float)D), top = -1e30f, all = 0;
    float2 own[PAIRS], sum[PAIRS];

#pragma unroll
    for (int p = 0; p < PAIRS; p++) {
        bool inside = query < S && lane + 8 * p < half;
        own[p] = inside ? __bfloat1622float2(q2[head + (long long)query * half + lane + 8 * p])
                        : make_float2(0, 0);
        sum[p] = make_float2(0, 0);
    }
    for (int k0 = 0; k0 < S; k0 += KEYS) {
        int count = min(KEYS, S - k0);
        for (int e = t; e < count * half; e += 256) {
            keys[e] = __bfloat1622float2(k2[head + (long long)k0 * half + e]);
            values[e] = __bfloat1622float2(v2[head + (long long)k0 * half + e]);
        }
        __syncthreads();
        for (int c = 0; c < count; c++) {
            float score = 0, higher, factor, weight;
#pragma unroll
            for (int p = 0; p < PAIRS; p++)
                if (lane + 8 * p < half) {
                    float2 key = keys[c * half + lane + 8 * p];
                    score += own[p].x * key.x + own[p].y * key.y;
                }
            for (int step = 1; step < 8; step *= 2)
                score += __shfl_xor_sync(0xffffffffu, score, step);
            higher = fmaxf(top, score * scale);
            factor = __expf(top - higher);
            weight = __expf(score * scale - higher);
            top = higher;
            all = all * factor + weight;
#pragma unroll
            for (int p = 0; p < PAIRS; p++)
                if (lane + 8 * p < half) {
                    float2 value = values[c * half + lane + 8 * p];
                    sum[p].x = sum[p].x * factor + weight * value.x;
                    sum[p].y = sum[p].y * factor + weight * value.y;
                }
        }
        __syncthreads();
    }
    if (query >= S)
        return;
#pragma unroll
    for (int p = 0; p < PAIRS; p++)
        if (lane + 8 * p < half)
            ((__nv_bfloat162 *)o)[head + (long long)query * half + lane + 8 * p] =
                __floats2bfloat162_rn(sum[p].x / all, sum[p].y / all);
}
