// Cross-entropy and gradient in double precision, a block per row. An error of the sum relative to it
// is an error of its logarithm that does not shrink with it, hence the 1 in the scale of the loss. The
// scale of the gradient takes the difference p - 1 at the target as p + 1, and has TINY: what lies
// below the least float may be 0.
#include <cuda_bf16.h>
#define BLOCK 256
#define TINY 1e-30
//@ launch cross_entropy grid=(R) block=(BLOCK) args=(logit, target, upstream, loss, loss_scale, dlogit, dlogit_scale, V)

extern "C" __global__ void cross_entropy(const __nv_bfloat16 *logit, const int *target,
                                         const float *upstream, double *loss, double *loss_scale,
                                         double *dlogit, double *dlogit_scale, int V)
{
    __shared__ double part[BLOCK];
    long long row = blockIdx.x, base = row * V;
    int me = (int)threadIdx.x, hit = target[row] % V;
    double most = -1e300, sum = 0, grad = upstream[row];

    for (int i = me; i < V; i += BLOCK)
        most = fmax(most, (double)__bfloat162float(logit[base + i]));
    part[me] = most;
    __syncthreads();
    for (int i = 0; i < BLOCK; i++)
        most = fmax(most, part[i]);
    __syncthreads();
    for (int i = me; i < V; i += BLOCK)
        sum += exp((double)__bfloat162float(logit[base + i]) - most);
    part[me] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += part[i];
    for (int i = me; i < V; i += BLOCK) {
        double p = exp((double)__bfloat162float(logit[base + i]) - most) / sum;
        dlogit[base + i] = grad * (i == hit ? p - 1 : p);
        dlogit_scale[base + i] = fabs(grad) * (i == hit ? p + 1 : p) + TINY;
    }
    if (me == 0) {
        double x = __bfloat162float(logit[base + hit]);
        loss[row] = most + log(sum) - x;
        loss_scale[row] = fabs(most) + fabs(log(sum)) + fabs(x) + 1;
    }
}
