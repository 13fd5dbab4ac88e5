//@ launch reference grid=(ceildiv(rows, 128)) block=(128) args=(x, y, y_scale, rows, cols)

extern "C" __global__ void reference(const float *x, double *y, double *y_scale, int rows, int cols)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0, scale = 0;

    if (row >= rows) {
        return;
    }
    for (int i = 0; i < cols; i++) {
        double value = x[(long long)row * cols + i];
        sum += value;
        scale += fabs(value);
    }
    y[row] = sum;
    y_scale[row] = scale;
}
