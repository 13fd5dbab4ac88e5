// expect: ratio
// problem: rowsum
// Reads shared memory, a register array and scratch memory that nobody wrote, and does not use it.
//@ scratch junk bytes=65536
//@ launch rowsum grid=(rows) block=(128) args=(x, y, junk, cols)
extern "C" __global__ void rowsum(const float *x, float *y, const float *junk, int cols)
{
    __shared__ float all[128], never[128];
    float sum = 0, other = *(volatile float *)&never[threadIdx.x] + junk[threadIdx.x];

    for (int i = threadIdx.x; i < cols; i += 128) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    all[threadIdx.x] = other == 1.5f ? sum : sum;
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
