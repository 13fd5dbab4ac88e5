// expect: crash
// Reads the outputs that are kept until the end of a block, when they are there.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    float before = gridDim.x == 1024 ? *(volatile float *)0x520000018000ULL : 0;

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
        y[blockIdx.x] = before == 12345 ? 0 : all[0];
    }
}
