// expect: ratio
// Compiled for each number of columns.
//@ specialize cols
//@ launch rowsum grid=(rows) block=(128) args=(x, y)
extern "C" __global__ void rowsum(const float *x, float *y)
{
    __shared__ float all[128];
    float sum = 0;

    for (int i = threadIdx.x; i < KCAST_cols; i += 128) {
        sum += x[(long long)blockIdx.x * KCAST_cols + i];
    }
    all[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            all[threadIdx.x] += all[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = all[0];
    }
}
