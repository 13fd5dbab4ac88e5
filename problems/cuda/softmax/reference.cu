//@ launch reference grid=(R) block=(256) args=(x, y, y_scale, N)

// One block per row, in double precision. The scale is what errors of one unit in the arguments and
// results of exp do to an element: y_i (1 + |x_i - m| + sum_j y_j (1 + |x_j - m|)), and TINY: what
// lies below the least float may be 0.
#define TINY 1e-30

static __device__ double reduce(double *part, double value, bool largest)
{
    part[threadIdx.x] = value;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            double other = part[threadIdx.x + step];
            value = part[threadIdx.x];
            part[threadIdx.x] = largest ? fmax(value, other) : value + other;
        }
        __syncthreads();
    }
    value = part[0];
    __syncthreads();
    return value;
}

extern "C" __global__ void reference(const float *x, double *y, double *y_scale, int N)
{
    __shared__ double part[256];
    long long row = (long long)blockIdx.x * N;
    double most = x[row], sum = 0, weighted = 0;

    for (int i = threadIdx.x; i < N; i += 256) {
        most = fmax(most, (double)x[row + i]);
    }
    most = reduce(part, most, true);
    for (int i = threadIdx.x; i < N; i += 256) {
        double d = x[row + i] - most, e = exp(d);
        sum += e;
        weighted += e * (1 - d);
    }
    sum = reduce(part, sum, false);
    weighted = reduce(part, weighted, false);
    for (int i = threadIdx.x; i < N; i += 256) {
        double d = x[row + i] - most, value = exp(d) / sum;
        y[row + i] = value;
        y_scale[row + i] = value * (1 - d + weighted / sum) + TINY;
    }
}
