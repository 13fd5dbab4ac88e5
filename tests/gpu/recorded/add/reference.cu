//@ launch reference grid=(ceildiv(R * N, 256)) block=(256) args=(a, b, y, y_scale, R, N)

// One thread per element, in double precision.
extern "C" __global__ void reference(const float *a, const float *b, double *y, double *y_scale,
                                     int R, int N)
{
    long i = (long)blockIdx.x * 256 + (long)threadIdx.x;

    if (i < (long)R * N) {
        y[i] = (double)a[i] + b[i];
        y_scale[i] = fabs((double)a[i]) + fabs((double)b[i]);
    }
}
