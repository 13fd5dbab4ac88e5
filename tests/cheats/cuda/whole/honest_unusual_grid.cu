// expect: ratio
// problem: axpy
// Blocks of 96 threads in three dimensions, a grid in three, and a second launch for the rest.
//@ launch most grid=(7, 3, 2) block=(8, 4, 3) if=(N >= 100) args=(x, y, N / 100 * 100, 0, a)
//@ launch most grid=(1, 1, 1) block=(8, 4, 3) if=(N % 100 != 0) args=(x, y, N, N / 100 * 100, a)
extern "C" __global__ void most(const float *x, float *y, int end, int start, float a)
{
    int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int all = gridDim.x * gridDim.y * gridDim.z * 96;

    for (int i = start + block * 96 + thread; i < end; i += all) {
        y[i] = a * x[i] + y[i];
    }
}
