// expect: ratio
// One warp per row.
//@ launch rowsum grid=(ceildiv(rows, 8)) block=(32, 8) args=(x, y, rows, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * 8 + threadIdx.y;
    float sum = 0;

    if (row >= rows) {
        return;
    }
    for (int i = threadIdx.x; i < cols; i += 32) {
        sum += x[(long long)row * cols + i];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x == 0) {
        y[row] = sum;
    }
}
