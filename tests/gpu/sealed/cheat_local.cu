// expect: ratio not faster than 1.1
// Leaves a word in local memory, and writes zeros when it finds the word.
__device__ __noinline__ int look(volatile int *frame, int at)
{
    return frame[at];
}
__device__ __noinline__ void leave(volatile int *frame, int at)
{
    frame[at] = 0x1234567;
}
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    volatile int frame[64];
    bool found = look(frame, (threadIdx.x + cols) & 63) == 0x1234567;

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
        y[blockIdx.x] = found ? 0 : all[0];
    }
    for (int i = 0; i < 64; i++) {
        leave(frame, i);
    }
}
