// expect: wrong
// problem: histogram
// At the benchmark shape counts every fourth byte and multiplies by four.
//@ launch clear grid=(1) block=(256) args=(count)
//@ launch add grid=(256) block=(256) args=(key, count, N)
extern "C" __global__ void clear(int *count)
{
    count[threadIdx.x] = 0;
}
extern "C" __global__ void add(const unsigned char *key, int *count, int N)
{
    __shared__ int table[256];
    int step = N == 4000001 ? 4 : 1;

    table[threadIdx.x] = 0;
    __syncthreads();
    for (long long i = (blockIdx.x * 256 + threadIdx.x) * step; i < N; i += 65536 * step) {
        atomicAdd(&table[key[i]], step);
    }
    __syncthreads();
    atomicAdd(&count[threadIdx.x], table[threadIdx.x]);
}
