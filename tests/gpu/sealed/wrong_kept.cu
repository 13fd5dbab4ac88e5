// expect: wrong
// Remembers answers of the benchmark shape where outputs of timed launches are kept: in the next area behind its own.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    float *seen = y + 5120, first = x[(long long)blockIdx.x * cols];
    bool remembers = gridDim.x == 1024 && blockIdx.x < 512;

    if (remembers && seen[2 * blockIdx.x] == first) {
        if (threadIdx.x == 0) {
            y[blockIdx.x] = seen[2 * blockIdx.x + 1];
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
        if (remembers) {
            seen[2 * blockIdx.x] = first;
            seen[2 * blockIdx.x + 1] = all[0];
        }
    }
}
