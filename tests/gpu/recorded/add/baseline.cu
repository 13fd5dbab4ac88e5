//@ launch add grid=(ceildiv(R * N, 256)) block=(256) args=(a, b, y, R, N)

// One thread per element.
extern "C" __global__ void add(const float *a, const float *b, float *y, int R, int N)
{
    long i = (long)blockIdx.x * 256 + (long)threadIdx.x;

    if (i < (long)R * N) {
        y[i] = a[i] + b[i];
    }
}
