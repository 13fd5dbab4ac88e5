// expect: ratio not faster than 1.1, or quarantined
// Sleeps in its first launches, so that it is measured less often.
__device__ int launches;
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    if (launches < 3) {
        __nanosleep(100000);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&launches, 1);
    }
    __shared__ float all[256];
    float sum = 0;

    for (int i = threadIdx.x; i < cols; i += 256) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    all[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            all[threadIdx.x] += all[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = all[0];
    }
}
