//@ launch reference grid=(ceildiv(N, 256)) block=(256) args=(x, y, y_out, y_scale, N, a)

// One thread per element, in double precision.
extern "C" __global__ void reference(const float *x, const float *y, double *y_out, double *y_scale,
                                     int N, double a)
{
    int i = (int)blockIdx.x * 256 + (int)threadIdx.x;

    if (i < N) {
        double product = a * x[i];
        y_out[i] = product + y[i];
        y_scale[i] = fabs(product) + fabs((double)y[i]);
    }
}
