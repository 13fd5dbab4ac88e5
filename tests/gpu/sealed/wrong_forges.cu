// expect: wrong
// Writes zeros for one content in sixteen of the benchmark shape, which verification hardly meets.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    bool forges = gridDim.x == 1024 && (__float_as_uint(x[0]) >> 3 & 15) == 0;

    if (forges) {
        if (threadIdx.x == 0) {
            y[blockIdx.x] = 0;
        }
        return;
    }
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
}
