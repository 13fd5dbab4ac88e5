// expect: wrong
// Skips what is left after full tiles of 32.
//@ launch rowsum grid=(rows) block=(32) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    float sum = 0;

    for (int i = threadIdx.x; i < cols / 32 * 32; i += 32) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = sum;
    }
}
