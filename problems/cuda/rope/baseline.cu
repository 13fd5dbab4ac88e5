// A thread for each pair, which computes the pair's angle, its sine and its cosine.
#include <cuda_bf16.h>
//@ launch rope grid=(ceildiv(T * H * P, 256)) block=(256) args=(x, position, y, T, H, P, base)

extern "C" __global__ void rope(const __nv_bfloat16 *x, const int *position, __nv_bfloat16 *y, int T,
                                int H, int P, float base)
{
    long long pair = blockIdx.x * 256LL + threadIdx.x;
    float angle, sine, cosine, a, b;
    int i;

    if (pair >= (long long)T * H * P)
        return;
    long long head = pair / P;
    i = (int)(pair % P);
    angle = (float)position[head / H] * powf(base, -(float)i / (float)P);
    sincosf(angle, &sine, &cosine);
    x += head * 2 * P + i;
    y += head * 2 * P + i;
    a = __bfloat162float(x[0]);
    b = __bfloat162float(x[P]);
    y[0] = __float2bfloat16(a * cosine - b * sine);
    y[P] = __float2bfloat16(b * cosine + a * sine);
}
