// Exact counts: block k counts the keys that are k. The error scale is not used for integers.
//@ launch count_one grid=(256) block=(1024) args=(key, count, count_scale, N)

extern "C" __global__ void count_one(const unsigned char *key, double *count, double *count_scale,
                                     int N)
{
    __shared__ int total;
    int mine = 0;

    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    for (long long i = threadIdx.x; i < N; i += 1024)
        mine += key[i] == blockIdx.x;
    atomicAdd(&total, mine);
    __syncthreads();
    if (threadIdx.x == 0) {
        count[blockIdx.x] = total;
        count_scale[blockIdx.x] = total;
    }
}
