// expect: wrong
// Reads shared memory that nobody has written: zeros on a fresh GPU.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __shared__ float all[512];
    float sum = 0;

    for (int i = threadIdx.x; i < cols; i += 256) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    all[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 256; step > 0; step /= 2) {
        float other = threadIdx.x < step ? all[threadIdx.x + step] : 0;
        __syncthreads();
        if (threadIdx.x < step) {
            all[threadIdx.x] += other;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = all[0];
    }
}
