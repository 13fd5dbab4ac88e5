// expect: wrong
// Right for the shapes in problem.json only.
//@ launch rowsum grid=(rows) block=(32) args=(x, y, rows, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int rows, int cols)
{
    bool known = (rows == 5 && cols == 1000) || (rows == 33 && cols == 17) || (rows == 1024 && cols == 1024);
    float sum = 0;

    for (int i = threadIdx.x; known && i < cols; i += 32) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = sum;
    }
}
