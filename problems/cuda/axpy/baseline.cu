//@ launch axpy grid=(ceildiv(N, 256)) block=(256) args=(x, y, N, a)

// One thread per element.
extern "C" __global__ void axpy(const float *x, float *y, int N, float a)
{
    int i = (int)blockIdx.x * 256 + (int)threadIdx.x;

    if (i < N) {
        y[i] = a * x[i] + y[i];
    }
}
