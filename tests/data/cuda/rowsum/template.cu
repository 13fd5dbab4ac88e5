//@ tune THREADS in (32, 64, 128, 256, 512, 1024)
//@ tune UNROLL in (1, 2, 4, 8)
//@ tune ROWS in (1, 2, 4, 8) if ROWS * THREADS <= 1024
//@ launch rowsum grid=(ceildiv(rows, ROWS)) block=(THREADS, ROWS) args=(x, y, rows, cols)

extern "C" __global__ void rowsum(const float *x, float *y, int rows, int cols)
{
    __shared__ float part[ROWS][THREADS];
    int at = blockIdx.x * ROWS + threadIdx.y;
    const float *row = x + (long long)at * cols;
    float sum = 0;

    if (at < rows) {
#pragma unroll UNROLL
        for (int i = threadIdx.x; i < cols; i += THREADS) {
            sum += row[i];
        }
    }
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            part[threadIdx.y][threadIdx.x] += part[threadIdx.y][threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0 && at < rows) {
        y[at] = part[threadIdx.y][0];
    }
}
