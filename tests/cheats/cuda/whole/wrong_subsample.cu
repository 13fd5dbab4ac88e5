// expect: wrong
// problem: reduce_sum
// At the benchmark shape adds up every other element, twice.
//@ scratch total bytes=16 init=zero
//@ launch add grid=(256) block=(256) args=(x, total, N)
//@ launch finish grid=(1) block=(1) args=(total, y)
extern "C" __global__ void add(const float *x, float *total, int N)
{
    int step = N == 2000003 ? 2 : 1;
    float sum = 0;

    for (long long i = (blockIdx.x * 256 + threadIdx.x) * step; i < N; i += 65536 * step) {
        sum += x[i];
    }
    atomicAdd(total, sum * step);
}
extern "C" __global__ void finish(const float *total, float *y)
{
    *y = *total;
}
