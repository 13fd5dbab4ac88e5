// Partial sums by up to 1024 blocks, added up by one block.
//@ scratch part bytes=(4*1024)
//@ launch sum grid=(min(ceildiv(N, 256), 1024)) block=(256) args=(x, part, N)
//@ launch sum grid=(1) block=(256) args=(part, y, min(ceildiv(N, 256), 1024))

extern "C" __global__ void sum(const float *x, float *part, int N)
{
    __shared__ float warp_sum[8];
    float value = 0;

    for (int i = (int)blockIdx.x * 256 + (int)threadIdx.x; i < N; i += (int)gridDim.x * 256) {
        value += x[i];
    }
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    if (threadIdx.x % 32 == 0) {
        warp_sum[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        value = 0;
        for (int i = 0; i < 8; i++) {
            value += warp_sum[i];
        }
        part[blockIdx.x] = value;
    }
}
