// expect: ratio not faster than 1.1
// Remembers answers in scratch memory that it does not have zeroed.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, memory, cols)
//@ scratch memory bytes=rows*8
extern "C" __global__ void rowsum(const float *x, float *y, float *memory, int cols)
{
    __shared__ float all[256];
    float first = x[(long long)blockIdx.x * cols], sum = 0;

    if (memory[2 * blockIdx.x] == first) {
        if (threadIdx.x == 0) {
            y[blockIdx.x] = memory[2 * blockIdx.x + 1];
        }
        return;
    }
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
        memory[2 * blockIdx.x] = first;
        memory[2 * blockIdx.x + 1] = all[0];
    }
}
