// expect: ratio
// problem: reduce_sum
// One cooperative launch with a barrier over the grid, in scratch memory that the manifest zeroes.
#define BLOCKS 128
//@ scratch part bytes=4*BLOCKS
//@ scratch arrived bytes=16 init=zero
//@ launch sum grid=(BLOCKS) block=(256) cooperative args=(x, part, arrived, y, N)
static __device__ float add(float value)
{
    __shared__ float warp[8];

    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        warp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = 0;
    for (int i = 0; i < 8; i++) {
        value += warp[i];
    }
    return value;
}
extern "C" __global__ void sum(const float *x, float *part, unsigned *arrived, float *y, int N)
{
    float value = 0;

    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += BLOCKS * 256) {
        value += x[i];
    }
    value = add(value);
    if (threadIdx.x == 0) {
        part[blockIdx.x] = value;
        __threadfence();
        atomicAdd(arrived, 1);
        while (*(volatile unsigned *)arrived < BLOCKS) {
        }
        __threadfence();
    }
    __syncthreads();
    if (blockIdx.x == 0) {
        value = add(threadIdx.x < BLOCKS ? *(volatile float *)&part[threadIdx.x] : 0);
        if (threadIdx.x == 0) {
            *y = value;
        }
    }
}
