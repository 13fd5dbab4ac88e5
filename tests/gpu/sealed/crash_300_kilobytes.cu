// expect: crash
// 300 KiB of dynamic shared memory.
//@ launch rowsum grid=(rows) block=(256) smem=307200 args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    extern __shared__ float sums[];
    float sum = 0;

    for (int i = threadIdx.x; i < cols; i += 256) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    sums[threadIdx.x * 200] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            sums[threadIdx.x * 200] += sums[(threadIdx.x + step) * 200];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = sums[0];
    }
}
