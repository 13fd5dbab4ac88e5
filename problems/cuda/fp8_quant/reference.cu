//@ launch reference grid=(R) block=(128) args=(x, q, q_scale, scale, scale_scale, N, eps)
#include <cuda_bf16.h>

// One block per row, group after group, in double precision. The unrounded quotient is the expected
// value of q: rounding it to the nearest is half a unit in the last place, and below 2^-6, where e4m3 has
// no more exponents, half of that of 2^-6.
extern "C" __global__ void reference(const __nv_bfloat16 *x, double *q, double *q_scale,
                                     double *scale, double *scale_scale, int N,
                                     double eps)
{
    __shared__ double part[128];
    long long row = (long long)blockIdx.x * N;
    int groups = (N + 127) / 128, t = threadIdx.x;

    for (int g = 0; g < groups; g++) {
        int at = g * 128 + t;
        double value = at < N ? (double)__bfloat162float(x[row + at]) : 0;
        double factor;

        part[t] = fabs(value);
        __syncthreads();
        for (int step = 64; step > 0; step /= 2) {
            if (t < step)
                part[t] = fmax(part[t], part[t + step]);
            __syncthreads();
        }
        factor = fmax(part[0], eps) / 448;
        if (at < N) {
            q[row + at] = value / factor;
            q_scale[row + at] = fmax(fabs(value / factor), 0.015625);
        }
        if (t == 0) {
            scale[(long long)blockIdx.x * groups + g] = factor;
            scale_scale[(long long)blockIdx.x * groups + g] = factor;
        }
        __syncthreads();
    }
}
