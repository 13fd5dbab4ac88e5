// expect: wrong
// Changes the stamp of the clock that lies before the tensors, so that its launch looks disturbed.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
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
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        *(unsigned long long *)0x500000004000ULL -= 1000;
    }
}
