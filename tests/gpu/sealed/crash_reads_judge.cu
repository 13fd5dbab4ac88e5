// expect: crash
// Reads the result words of the launch before, at the address where they are while no launch runs.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    unsigned long long word = *(volatile unsigned long long *)0x520000004000ULL;

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
        y[blockIdx.x] = word == 12345 ? 0 : all[0];
    }
}
