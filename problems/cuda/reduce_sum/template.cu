//@ tune FINISH in (0, 1, 2)
//@ tune THREADS in (64, 128, 256, 512, 1024)
//@ tune VEC in (1, 2, 4)
//@ tune ITEMS in (1, 2, 4, 8)
//@ tune WAVES in (1, 2, 4, 8, 16)
//@ tune TREE in (0, 1)
//@ tune MANY in (0, 1) if FINISH != 1 || MANY == 1
// Sum of N floats by at most 132 * WAVES blocks, each of which has one part of the sum.
// FINISH how the parts are added up: 0 by a second launch, 1 by atomic additions, 2 by the block
//        that is the last to have its part.
// VEC    floats of one load. ITEMS loads are under way at a time, each with a sum of its own.
// TREE   1 adds up a block's threads in shared memory, 0 by shuffles.
// MANY   1 provides for more than 1024 parts.
#define LANES 32
//@ scratch part bytes=(4*132*WAVES)
//@ scratch ticket bytes=4 init=zero
//@ launch clear grid=(1) block=(LANES) args=(y) if=(FINISH == 1)
//@ launch sum grid=(min(132*WAVES, ceildiv(N, THREADS*VEC*ITEMS))) block=(THREADS) args=(x, part, ticket, y, N)
//@ launch finish grid=(1) block=(THREADS) args=(part, y, min(132*WAVES, ceildiv(N, THREADS*VEC*ITEMS))) if=(FINISH == 0)

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef float type; };
template <> struct vector_of<2> { typedef float2 type; };
template <> struct vector_of<4> { typedef float4 type; };

typedef vector_of<VEC>::type vector;

union pack {
    vector whole;
    float value[VEC];
};

// The sum over the block; thread 0 has it.
static __device__ __forceinline__ float reduce(float value)
{
#if TREE
    __shared__ float leaf[THREADS];
    int me = (int)threadIdx.x;

    leaf[me] = value;
    __syncthreads();
    for (int step = THREADS / 2; step > 0; step /= 2) {
        if (me < step)
            leaf[me] += leaf[me + step];
        __syncthreads();
    }
    return leaf[0];
#else
    __shared__ float warp_sum[THREADS / LANES];

#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    if (threadIdx.x % LANES == 0)
        warp_sum[threadIdx.x / LANES] = value;
    __syncthreads();
    value = 0;
    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < THREADS / LANES; i++)
            value += warp_sum[i];
    }
    __syncthreads();
    return value;
#endif
}

static __device__ __forceinline__ void add_parts(const float *part, float *y, int parts)
{
    float value = 0;

    if (!MANY && parts > 1024)
        parts = 1024;
    for (int i = threadIdx.x; i < parts; i += THREADS)
        value += __ldcg(part + i);
    value = reduce(value);
    if (threadIdx.x == 0)
        *y = value;
}

extern "C" __global__ void clear(float *y)
{
    if (threadIdx.x == 0)
        *y = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sum(const float *x, float *part, unsigned *ticket, float *y, int N)
{
    const vector *xv = (const vector *)x;
    int count = N / VEC, all = (int)gridDim.x * THREADS;
    int me = (int)blockIdx.x * THREADS + (int)threadIdx.x, at = me;
    float total = 0, value[ITEMS];
    pack p[ITEMS];

#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        value[k] = 0;
    for (; at + (ITEMS - 1) * all < count; at += ITEMS * all) {
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            p[k].whole = xv[at + k * all];
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
#pragma unroll
            for (int e = 0; e < VEC; e++)
                value[k] += p[k].value[e];
        }
    }
    for (; at < count; at += all) {
        p[0].whole = xv[at];
#pragma unroll
        for (int e = 0; e < VEC; e++)
            value[0] += p[0].value[e];
    }
    if (me < N % VEC)
        total = x[count * VEC + me];
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        total += value[k];
    total = reduce(total);

    if (FINISH == 1) {
        if (threadIdx.x == 0)
            atomicAdd(y, total);
        return;
    }
    if (threadIdx.x == 0)
        part[blockIdx.x] = total;
    if (FINISH == 2) {
        __shared__ bool last;
        if (threadIdx.x == 0) {
            __threadfence();
            last = atomicAdd(ticket, 1u) == gridDim.x - 1;
            __threadfence();
        }
        __syncthreads();
        if (last)
            add_parts(part, y, (int)gridDim.x);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) finish(const float *part, float *y, int parts)
{
    add_parts(part, y, parts);
}
