// Rotary position embedding in double precision, a thread per pair. An error of the angle moves the
// pair around the circle by that much, however small the cosine is: the scale is |a| + |b|.
#include <cuda_bf16.h>
//@ launch rope grid=(ceildiv(T * H * P, 256)) block=(256) args=(x, position, y, y_scale, T, H, P, base)

extern "C" __global__ void rope(const __nv_bfloat16 *x, const int *position, double *y,
                                double *y_scale, int T, int H, int P, double base)
{
    long long pair = blockIdx.x * 256LL + threadIdx.x;
    long long head = pair / P, at = head * 2 * P + pair % P;
    double angle, a, b;

    if (pair >= (long long)T * H * P)
        return;
    angle = position[head / H] * pow(base, -(double)(pair % P) / P);
    a = __bfloat162float(x[at]);
    b = __bfloat162float(x[at + P]);
    y[at] = a * cos(angle) - b * sin(angle);
    y[at + P] = b * cos(angle) + a * sin(angle);
    y_scale[at] = fabs(a) + fabs(b);
    y_scale[at + P] = fabs(a) + fabs(b);
}
