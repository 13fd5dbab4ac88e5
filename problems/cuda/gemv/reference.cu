//@ launch reference grid=(M) block=(128) args=(A, x, y, y_scale, K)
#include <cuda_bf16.h>

// One block per row, in double precision.
extern "C" __global__ void reference(const __nv_bfloat16 *A, const __nv_bfloat16 *x, double *y,
                                     double *y_scale, int K)
{
    __shared__ double sum[128], scale[128];
    const __nv_bfloat16 *row = A + (long long)blockIdx.x * K;
    int me = threadIdx.x;

    sum[me] = scale[me] = 0;
    for (int i = me; i < K; i += 128) {
        double product = (double)__bfloat162float(row[i]) * (double)__bfloat162float(x[i]);
        sum[me] += product;
        scale[me] += fabs(product);
    }
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (me < step) {
            sum[me] += sum[me + step];
            scale[me] += scale[me + step];
        }
        __syncthreads();
    }
    if (me == 0) {
        y[blockIdx.x] = sum[0];
        y_scale[blockIdx.x] = scale[0];
    }
}
