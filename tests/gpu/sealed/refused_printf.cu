// expect: rejected
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    printf("%d\n", cols);
    y[blockIdx.x] = x[0];
}
