// expect: compile-error
//@ launch rowsum grid=(rows) block=(256) args=(x, y, columns)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    y[blockIdx.x] = x[cols];
}
