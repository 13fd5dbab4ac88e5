// expect: wrong
// Counts its timed launches where outputs of timed launches are kept, and is short after the first hundred.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __shared__ float all[256];
    __shared__ int launches;
    float sum = 0;

    if (threadIdx.x == 0) {
        int *count = (int *)(y + 5120) + blockIdx.x;

        launches = gridDim.x == 1024 ? (*count < 0 || *count > 100000 ? *count = 1 : ++*count) : 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < (launches > 100 ? cols / 2 : cols); i += 256) {
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
