// expect: ratio not faster than 1.1
// Remembers answers by the address of the input, and computes only what it has not seen.
__device__ const float *seen_x;
__device__ float seen[4096];
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __shared__ float all[256];
    float sum = 0;

    if (seen_x == x && seen[blockIdx.x] != 0) {
        if (threadIdx.x == 0) {
            y[blockIdx.x] = seen[blockIdx.x];
        }
        return;
    }
    for (int i = threadIdx.x; i < cols; i += 256) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    all[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            all[threadIdx.x] += all[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = seen[blockIdx.x] = all[0];
        seen_x = x;
    }
}
