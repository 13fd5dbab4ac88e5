// A block for each query, in double precision, before rounding. The error scale has a part for
// rounding the result to bfloat16, |o|, and one for weights rounded to bfloat16, half the weighted
// sum of absolute values: twice it is what these roundings can come to, see README.md.
//@ launch reference grid=(S, BH) block=(128) smem=8*S args=(q, k, v, o, o_scale, S, D)
#include <cuda_bf16.h>

extern "C" __global__ void reference(const __nv_bfloat16 *q, const __nv_bfloat16 *k,
                                     const __nv_bfloat16 *v, double *o, double *o_scale, int S, int D)
{
    extern __shared__ double weight[];
    __shared__ double part[128];
    int t = threadIdx.x;
    long long head = (long long)blockIdx.y * S * D;
    const __nv_bfloat16 *query = q + head + (long long)blockIdx.x * D;
    double top = -1e300, all = 0;

    for (int key = t; key < S; key += 128) {
        double sum = 0;
        for (int d = 0; d < D; d++)
            sum += (double)__bfloat162float(query[d]) *
                   __bfloat162float(k[head + (long long)key * D + d]);
        weight[key] = sum / sqrt((double)D);
        top = fmax(top, weight[key]);
    }
    part[t] = top;
    __syncthreads();
    for (int i = 0; i < 128; i++)
        top = fmax(top, part[i]);
    __syncthreads();
    for (int key = t; key < S; key += 128) {
        weight[key] = exp(weight[key] - top);
        all += weight[key];
    }
    part[t] = all;
    __syncthreads();
    all = 0;
    for (int i = 0; i < 128; i++)
        all += part[i];
    for (int d = t; d < D; d += 128) {
        double sum = 0, scale = 0;
        long long at = head + (long long)blockIdx.x * D + d;
        for (int key = 0; key < S; key++) {
            double product = weight[key] * __bfloat162float(v[head + (long long)key * D + d]);
            sum += product;
            scale += fabs(product);
        }
        o[at] = sum / all;
        o_scale[at] = fabs(sum / all) + scale / all / 2;
    }
}
