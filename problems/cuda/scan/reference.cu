// Inclusive prefix sum in double precision; the error scale is the prefix sum of absolute values. A
// thread sums SPAN elements, one thread adds up those sums, and every thread scans its own span.
#define SPAN 512
//@ scratch part bytes=16 * ceildiv(N, SPAN)
//@ launch sum_spans grid=(ceildiv(N, SPAN * 64)) block=(64) args=(x, part, N)
//@ launch add_up grid=(1) block=(1) args=(part, N)
//@ launch scan_spans grid=(ceildiv(N, SPAN * 64)) block=(64) args=(x, part, y, y_scale, N)

// part holds pairs: a sum, and the sum of absolute values.
extern "C" __global__ void sum_spans(const float *x, double *part, int N)
{
    long long span = blockIdx.x * 64LL + threadIdx.x, from = span * SPAN;
    double sum = 0, scale = 0;

    if (from >= N)
        return;
    for (long long i = from; i < from + SPAN && i < N; i++) {
        sum += x[i];
        scale += fabs((double)x[i]);
    }
    part[2 * span] = sum;
    part[2 * span + 1] = scale;
}

// From now on part holds what stands before each span.
extern "C" __global__ void add_up(double *part, int N)
{
    double sum = 0, scale = 0;

    for (long long span = 0; span * SPAN < N; span++) {
        double next_sum = sum + part[2 * span], next_scale = scale + part[2 * span + 1];
        part[2 * span] = sum;
        part[2 * span + 1] = scale;
        sum = next_sum;
        scale = next_scale;
    }
}

extern "C" __global__ void scan_spans(const float *x, const double *part, double *y,
                                      double *y_scale, int N)
{
    long long span = blockIdx.x * 64LL + threadIdx.x, from = span * SPAN;
    double sum, scale;

    if (from >= N)
        return;
    sum = part[2 * span];
    scale = part[2 * span + 1];
    for (long long i = from; i < from + SPAN && i < N; i++) {
        sum += x[i];
        scale += fabs((double)x[i]);
        y[i] = sum;
        y_scale[i] = scale;
    }
}
