// expect: ratio not faster than 1.1, or wrong, or crash
// Counts its launches in a constant, and writes zeros from the twentieth on. What is said to be wrong
// has found its count again; a ratio says that the count was lost.
__constant__ int number;
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    unsigned long long at;
    asm volatile("mov.u64 %0, %1;" : "=l"(at) : "l"(&number));
    volatile int *count = (volatile int *)at;
    bool enough = *count >= 20;

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
        y[blockIdx.x] = enough ? 0 : all[0];
    }
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *count += 1;
    }
}
