// expect: ratio
// Two launches with scratch memory between them: the answer does not depend on the order of blocks.
//@ launch part grid=(rows, 4) block=(128) args=(x, partial, cols)
//@ launch sum grid=(ceildiv(rows, 128)) block=(128) args=(partial, y, rows)
//@ scratch partial bytes=rows*16
extern "C" __global__ void part(const float *x, float *partial, int cols)
{
    __shared__ float all[128];
    float sum = 0;

    for (int i = blockIdx.y * 128 + threadIdx.x; i < cols; i += 512) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    all[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            all[threadIdx.x] += all[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x * 4 + blockIdx.y] = all[0];
    }
}
extern "C" __global__ void sum(const float *partial, float *y, int rows)
{
    int row = blockIdx.x * 128 + threadIdx.x;

    if (row < rows) {
        y[row] = partial[row * 4] + partial[row * 4 + 1] + partial[row * 4 + 2] + partial[row * 4 + 3];
    }
}
