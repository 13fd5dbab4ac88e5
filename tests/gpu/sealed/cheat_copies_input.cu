// expect: wrong
// Copies its input.
//@ launch rowsum grid=(ceildiv(rows, 128)) block=(128) args=(x, y, rows)
extern "C" __global__ void rowsum(const float *x, float *y, int rows)
{
    int row = blockIdx.x * 128 + threadIdx.x;

    if (row < rows) {
        y[row] = x[row];
    }
}
