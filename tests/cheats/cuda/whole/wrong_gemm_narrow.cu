// expect: wrong
// problem: sgemm
// Rounds its inputs to eight bits of mantissa, as a tensor core's fast formats do.
//@ launch gemm grid=(ceildiv(N, 32), M) block=(32) args=(A, B, C, N, K)
static __device__ float narrow(float value)
{
    return __uint_as_float(__float_as_uint(value) & 0xffff0000u);
}
extern "C" __global__ void gemm(const float *A, const float *B, float *C, int N, int K)
{
    int column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0;

    if (column >= N) {
        return;
    }
    for (int k = 0; k < K; k++) {
        sum += narrow(A[(long long)blockIdx.y * K + k]) * narrow(B[(long long)k * N + column]);
    }
    C[(long long)blockIdx.y * N + column] = sum;
}
