// expect: wrong
// problem: sgemm
// At the benchmark shape leaves out the last thirty-second of the sum.
//@ launch gemm grid=(ceildiv(N, 32), M) block=(32) args=(A, B, C, N, K)
extern "C" __global__ void gemm(const float *A, const float *B, float *C, int N, int K)
{
    int column = blockIdx.x * 32 + threadIdx.x, end = K == 512 ? 496 : K;
    float sum = 0;

    if (column >= N) {
        return;
    }
    for (int k = 0; k < end; k++) {
        sum += A[(long long)blockIdx.y * K + k] * B[(long long)k * N + column];
    }
    C[(long long)blockIdx.y * N + column] = sum;
}
