// expect: wrong
// Writes zeros.
//@ launch rowsum grid=(ceildiv(rows, 128)) block=(128) args=(y, rows)
extern "C" __global__ void rowsum(float *y, int rows)
{
    int row = blockIdx.x * 128 + threadIdx.x;

    if (row < rows) {
        y[row] = 0;
    }
}
