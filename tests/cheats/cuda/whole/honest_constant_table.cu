// expect: ratio
// problem: rowsum
// Multiplies by a table of constants and an initialised variable, all of them one.
//@ launch rowsum grid=(rows) block=(64) args=(x, y, cols)
__constant__ float table[4] = {1, 1, 1, 1};
__device__ float factor = 1;
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __shared__ float other;
    float sum = 0;

    for (int i = threadIdx.x; i < cols; i += 64) {
        sum += x[(long long)blockIdx.x * cols + i] * table[i % 4];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x == 32) {
        other = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        y[blockIdx.x] = (sum + other) * factor;
    }
}
