// expect: wrong
// problem: transpose
// Moves the elements as halves.
#include <cuda_fp16.h>
//@ launch turn grid=(ceildiv(M * N, 256)) block=(256) args=(A, B, M, N)
extern "C" __global__ void turn(const float *A, float *B, int M, int N)
{
    int i = blockIdx.x * 256 + threadIdx.x;

    if (i < M * N) {
        B[(long long)(i % N) * M + i / N] = __half2float(__float2half(A[i]));
    }
}
