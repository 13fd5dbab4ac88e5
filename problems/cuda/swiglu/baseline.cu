//@ launch swiglu grid=(R, ceildiv(N, 256)) block=(256) args=(x, y, N)
#include <cuda_bf16.h>

// One thread per element.
extern "C" __global__ void swiglu(const __nv_bfloat16 *x, __nv_bfloat16 *y, int N)
{
    int i = (int)blockIdx.y * 256 + (int)threadIdx.x;

    if (i < N) {
        const __nv_bfloat16 *row = x + (long long)blockIdx.x * 2 * N;
        float gate = __bfloat162float(row[i]), up = __bfloat162float(row[N + i]);
        y[(long long)blockIdx.x * N + i] = __float2bfloat16(gate / (1 + expf(-gate)) * up);
    }
}
