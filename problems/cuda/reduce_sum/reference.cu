// The sum and the sum of absolute values in double precision: BLOCKS partial sums, then the whole.
#define BLOCKS 512
//@ scratch part bytes=(16*BLOCKS)
//@ launch sum_parts grid=(BLOCKS) block=(256) args=(x, part, N)
//@ launch add_up grid=(1) block=(1) args=(part, y, y_scale)

extern "C" __global__ void sum_parts(const float *x, double *part, int N)
{
    __shared__ double sum[256], scale[256];
    int me = threadIdx.x;

    sum[me] = scale[me] = 0;
    for (int i = (int)blockIdx.x * 256 + me; i < N; i += BLOCKS * 256) {
        sum[me] += x[i];
        scale[me] += fabs((double)x[i]);
    }
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (me < step) {
            sum[me] += sum[me + step];
            scale[me] += scale[me + step];
        }
        __syncthreads();
    }
    if (me == 0) {
        part[2 * blockIdx.x] = sum[0];
        part[2 * blockIdx.x + 1] = scale[0];
    }
}

extern "C" __global__ void add_up(const double *part, double *y, double *y_scale)
{
    double sum = 0, scale = 0;

    for (int i = 0; i < BLOCKS; i++) {
        sum += part[2 * i];
        scale += part[2 * i + 1];
    }
    *y = sum;
    *y_scale = scale;
}
