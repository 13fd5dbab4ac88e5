// expect: ratio
// The order of additions, and so the last bits, differ from run to run: allowed.
//@ launch clear grid=(ceildiv(rows, 128)) block=(128) args=(y, rows)
//@ launch add grid=(rows, 4) block=(128) args=(x, y, cols)
extern "C" __global__ void clear(float *y, int rows)
{
    int row = blockIdx.x * 128 + threadIdx.x;

    if (row < rows) {
        y[row] = 0;
    }
}
extern "C" __global__ void add(const float *x, float *y, int cols)
{
    float sum = 0;

    for (int i = blockIdx.y * 128 + threadIdx.x; i < cols; i += 512) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    atomicAdd(&y[blockIdx.x], sum);
}
