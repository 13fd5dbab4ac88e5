// expect: ratio
// problem: histogram
// A table for each warp in shared memory that is set to zero before it is used.
//@ launch clear grid=(1) block=(256) args=(count)
//@ launch add grid=(264) block=(256) args=(key, count, N)
extern "C" __global__ void clear(int *count)
{
    count[threadIdx.x] = 0;
}
extern "C" __global__ void add(const unsigned char *key, int *count, int N)
{
    __shared__ int table[8][256];

    for (int i = threadIdx.x; i < 2048; i += 256) {
        table[i / 256][i % 256] = 0;
    }
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += 264 * 256) {
        atomicAdd(&table[threadIdx.x / 32][key[i]], 1);
    }
    __syncthreads();
    int sum = 0;
    for (int i = 0; i < 8; i++) {
        sum += table[i][threadIdx.x];
    }
    atomicAdd(&count[threadIdx.x], sum);
}
