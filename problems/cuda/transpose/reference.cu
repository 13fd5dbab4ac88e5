//@ launch reference grid=(ceildiv(M*N, 256)) block=(256) args=(A, B, B_scale, M, N)

// One thread per element. The float itself is demanded: the tolerance is below one unit.
extern "C" __global__ void reference(const float *A, double *B, double *B_scale, int M, int N)
{
    long long at = (long long)blockIdx.x * 256 + threadIdx.x;

    if (at < (long long)M * N) {
        double value = A[at % M * N + at / M];
        B[at] = value;
        B_scale[at] = fabs(value);
    }
}
