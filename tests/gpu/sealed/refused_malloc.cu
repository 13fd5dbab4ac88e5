// expect: rejected
// Device memory that outlives the launch.
__device__ float *kept;
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    if (kept == nullptr) {
        kept = (float *)malloc(4096);
    }
    kept[0] = x[0];
    y[blockIdx.x] = kept[0] + cols;
}
