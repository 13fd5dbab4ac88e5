//@ launch reference grid=(ceildiv(n, 128)) block=(128) args=(x, y, y_scale, n)

extern "C" __global__ void reference(const float *x, double *y, double *y_scale, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        y[i] = 1.5 * x[i];
        y_scale[i] = 1.5 * x[i];
    }
}
