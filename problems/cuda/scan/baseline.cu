// Reduce, then scan: sums of the tiles, a scan of these sums by one block, and a scan of every tile
// that starts with what stands before it.
#define BLOCK 256
#define ITEMS 4
//@ scratch part bytes=4 * ceildiv(N, BLOCK * ITEMS)
//@ launch sum_tiles grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(x, part, N)
//@ launch scan_sums grid=(1) block=(BLOCK) args=(part, ceildiv(N, BLOCK * ITEMS))
//@ launch scan_tiles grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(x, part, y, N)

// The sum of `value` over the threads before this one; *ret_total over all of them.
static __device__ float scan_block(float value, float *ret_total)
{
    __shared__ float warp_sum[BLOCK / 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = value, before = 0, total = 0;

    for (int step = 1; step < 32; step *= 2) {
        float other = __shfl_up_sync(0xffffffffu, sum, step);
        if (lane >= step)
            sum += other;
    }
    if (lane == 31)
        warp_sum[warp] = sum;
    __syncthreads();
    for (int i = 0; i < BLOCK / 32; i++) {
        if (i == warp)
            before = total;
        total += warp_sum[i];
    }
    __syncthreads();
    sum = __shfl_up_sync(0xffffffffu, sum, 1);
    *ret_total = total;
    return lane > 0 ? before + sum : before;
}

extern "C" __global__ void sum_tiles(const float *x, float *part, int N)
{
    long long base = (long long)blockIdx.x * BLOCK * ITEMS;
    float sum = 0, total;

    for (int k = 0; k < ITEMS; k++) {
        long long i = base + k * BLOCK + threadIdx.x;
        if (i < N)
            sum += x[i];
    }
    (void)scan_block(sum, &total);
    if (threadIdx.x == 0)
        part[blockIdx.x] = total;
}

extern "C" __global__ void scan_sums(float *part, int tiles)
{
    float carry = 0, total;

    for (int base = 0; base < tiles; base += BLOCK) {
        int i = base + (int)threadIdx.x;
        float before = scan_block(i < tiles ? part[i] : 0, &total);
        if (i < tiles)
            part[i] = carry + before;
        carry += total;
    }
}

// Rounds of BLOCK elements, so that the threads of a warp read neighbours.
extern "C" __global__ void scan_tiles(const float *x, const float *part, float *y, int N)
{
    long long base = (long long)blockIdx.x * BLOCK * ITEMS;
    float carry = part[blockIdx.x], total;

    for (int k = 0; k < ITEMS; k++) {
        long long i = base + k * BLOCK + threadIdx.x;
        float value = i < N ? x[i] : 0, before = scan_block(value, &total);
        if (i < N)
            y[i] = carry + (before + value);
        carry += total;
    }
}
