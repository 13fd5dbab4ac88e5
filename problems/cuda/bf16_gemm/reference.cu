// C = A B in double precision, before rounding. The error scale has a part for rounding the result
// to bfloat16, |C|, and one for the single-precision sum, |A| |B| / 4096.
//@ launch reference grid=(ceildiv(N, 16), ceildiv(M, 16)) block=(16, 16) args=(A, B, C, C_scale, M, N, K)
#include <cuda_bf16.h>

extern "C" __global__ void reference(const __nv_bfloat16 *A, const __nv_bfloat16 *B, double *C,
                                     double *C_scale, int M, int N, int K)
{
    __shared__ float a[16][16], b[16][17];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    double sum = 0, scale = 0;

    for (int k = 0; k < K; k += 16) {
        bool in_a = row < M && k + x < K, in_b = col < N && k + y < K;
        a[y][x] = in_a ? __bfloat162float(A[(long long)row * K + k + x]) : 0;
        b[y][x] = in_b ? __bfloat162float(B[(long long)(k + y) * N + col]) : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) {
            double product = (double)a[y][i] * b[i][x];
            sum += product;
            scale += fabs(product);
        }
        __syncthreads();
    }
    if (row < M && col < N) {
        C[(long long)row * N + col] = sum;
        C_scale[(long long)row * N + col] = fabs(sum) + scale / 4096;
    }
}
