// expect: ratio
// problem: reduce_sum
// The block that arrives last adds up what the others left; vectors of four elements.
#define BLOCKS 512
//@ scratch part bytes=4*BLOCKS
//@ scratch arrived bytes=16 init=zero
//@ launch sum grid=(BLOCKS) block=(256) args=(x, part, arrived, y, N)
extern "C" __global__ void sum(const float *x, float *part, unsigned *arrived, float *y, int N)
{
    __shared__ float warp[8];
    __shared__ bool last;
    float value = 0;

    for (int i = blockIdx.x * 256 + threadIdx.x; i < N / 4; i += BLOCKS * 256) {
        float4 four = ((const float4 *)x)[i];
        value += (four.x + four.y) + (four.z + four.w);
    }
    if (blockIdx.x == 0 && threadIdx.x < N % 4) {
        value += x[N / 4 * 4 + threadIdx.x];
    }
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    if (threadIdx.x % 32 == 0) {
        warp[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) {
            value += warp[i];
        }
        part[blockIdx.x] = value;
        __threadfence();
        last = atomicAdd(arrived, 1) == BLOCKS - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        value = 0;
        for (int i = 0; i < BLOCKS; i++) {
            value += *(volatile float *)&part[i];
        }
        *y = value;
    }
}
