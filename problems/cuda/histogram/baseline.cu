// A table in shared memory for each block, added to the counters at the end.
#define BLOCK 256
#define SPAN 16384
//@ launch clear grid=(1) block=(256) args=(count)
//@ launch histogram grid=(min(1024, ceildiv(N, SPAN))) block=(BLOCK) args=(key, count, N)

extern "C" __global__ void clear(int *count)
{
    count[threadIdx.x] = 0;
}

extern "C" __global__ void histogram(const unsigned char *key, int *count, int N)
{
    __shared__ int table[256];
    long long thread = (long long)blockIdx.x * BLOCK + threadIdx.x;
    long long threads = (long long)gridDim.x * BLOCK;
    const unsigned *words = (const unsigned *)key;
    int rest = N / 4 * 4 + (int)thread;

    table[threadIdx.x] = 0;
    __syncthreads();
    for (long long i = thread; i < N / 4; i += threads) {
        unsigned word = words[i];
        for (int k = 0; k < 4; k++)
            atomicAdd(&table[word >> (8 * k) & 255], 1);
    }
    if (thread < 4 && rest < N)
        atomicAdd(&table[key[rest]], 1);
    __syncthreads();
    if (table[threadIdx.x] != 0)
        atomicAdd(&count[threadIdx.x], table[threadIdx.x]);
}
