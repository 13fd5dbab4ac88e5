//@ launch reference grid=(R) block=(256) args=(x, w, b, y, y_scale, N, eps)
#include <cuda_fp16.h>

// One block per row, in double precision. The scale is the result, which is rounded to half
// precision, and 2^-9 of what it is computed from, which leaves some units of a float.
static __device__ double reduce(double *part, double value)
{
    part[threadIdx.x] = value;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            part[threadIdx.x] += part[threadIdx.x + step];
        }
        __syncthreads();
    }
    value = part[0];
    __syncthreads();
    return value;
}

extern "C" __global__ void reference(const __half *x, const __half *w, const __half *b, double *y,
                                     double *y_scale, int N, double eps)
{
    __shared__ double part[256];
    long long row = (long long)blockIdx.x * N;
    double sum = 0, squares = 0, mean, factor;

    for (int i = threadIdx.x; i < N; i += 256) {
        sum += (double)__half2float(x[row + i]);
    }
    mean = reduce(part, sum) / N;
    for (int i = threadIdx.x; i < N; i += 256) {
        double d = (double)__half2float(x[row + i]) - mean;
        squares += d * d;
    }
    factor = 1 / sqrt(reduce(part, squares) / N + eps);
    for (int i = threadIdx.x; i < N; i += 256) {
        double value = (double)__half2float(x[row + i]);
        double weight = (double)__half2float(w[i]) * factor;
        double offset = (double)__half2float(b[i]), result = (value - mean) * weight + offset;
        double whole = (fabs(value) + fabs(mean)) * fabs(weight) + fabs(offset);
        y[row + i] = result;
        y_scale[row + i] = fabs(result) + whole / 512;
    }
}
