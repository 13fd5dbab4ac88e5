//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)

// One block per row: partial sums, then a tree in shared memory.
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __shared__ float part[256];
    const float *row = x + (long long)blockIdx.x * cols;
    float sum = 0;

    for (int i = threadIdx.x; i < cols; i += 256) {
        sum += row[i];
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            part[threadIdx.x] += part[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = part[0];
    }
}
