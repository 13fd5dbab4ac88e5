//@ tune THREADS in (32, 64, 128, 256, 512, 1024)
//@ tune ROWS in (1, 2, 4, 8, 16) if THREADS * ROWS <= 1024
//@ tune VEC in (1, 2, 4)
//@ tune UNROLL in (1, 2, 4)
//@ tune KEEP in (1, 8)
//@ tune FILTER in (0, 1)
//@ tune MERGE in (0, 1)
//@ tune SPLIT in (1, 2, 4, 8, 16)
// The eight largest of each row: ROWS rows of a block, THREADS threads for each of them. Every thread
// keeps the KEEP best of its elements in order; these lists are merged to one of eight.
// VEC    elements per load, where rows are aligned; UNROLL loads at once.
// FILTER 1 skips elements that are too small for the list, 0 always sorts them in.
// MERGE  0: eight times the best first element of all lists of a warp; 1: lists merged in pairs by
//        exchange between lanes.
// SPLIT  parts of a row by different blocks, merged by a second kernel.
//@ scratch part bytes=64 * R * SPLIT
//@ launch topk grid=(ceildiv(R, ROWS), SPLIT) block=(THREADS, ROWS) args=(x, value, column, part, R, N)
//@ launch finish grid=(ceildiv(R, 128)) block=(128) args=(part, value, column, R) if=(SPLIT > 1)

#define ALL 0xffffffffu
#define WARPS (THREADS / 32)

// An element as one integer: greater for a larger value, and for a lower column among equals, which 0
// and -0 are. No element is 0.
typedef unsigned long long key;

struct __align__(4 * VEC) pack {
    float at[VEC];
};

static __device__ __forceinline__ key make_key(float value, int column)
{
    unsigned bits = __float_as_uint(value + 0.0f); // -0 becomes 0

    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (key)bits << 32 | (unsigned)~column;
}

static __device__ __forceinline__ float key_value(key k)
{
    unsigned bits = (unsigned)(k >> 32);
    return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits);
}

static __device__ __forceinline__ void order(key &high, key &low)
{
    key more = high > low ? high : low, less = high > low ? low : high;
    high = more;
    low = less;
}

static __device__ __forceinline__ void insert(key (&list)[8], key k)
{
    if (FILTER && k <= list[KEEP - 1])
        return;
    if (k > list[KEEP - 1])
        list[KEEP - 1] = k;
#pragma unroll
    for (int i = KEEP - 1; i > 0; i--)
        order(list[i - 1], list[i]);
}

// The best eight of all lists of a warp; all lanes get them.
static __device__ __forceinline__ void merge(key (&list)[8])
{
#if MERGE == 0
    key best[8];

#pragma unroll
    for (int rank = 0; rank < 8; rank++) {
        key most = list[0];
#pragma unroll
        for (int step = 16; step > 0; step /= 2) {
            key other = __shfl_xor_sync(ALL, most, step);
            most = other > most ? other : most;
        }
        best[rank] = most;
        if (list[0] == most) { // only one lane has it, unless there is none left
#pragma unroll
            for (int i = 0; i < 7; i++)
                list[i] = list[i + 1];
            list[7] = 0;
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        list[i] = best[i];
#else
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        key other[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            other[i] = __shfl_xor_sync(ALL, list[7 - i], step);
#pragma unroll
        for (int i = 0; i < 8; i++)
            list[i] = other[i] > list[i] ? other[i] : list[i];
        // The better half of two ordered lists falls and rises once.
#pragma unroll
        for (int far = 4; far > 0; far /= 2)
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (i % (2 * far) < far)
                    order(list[i], list[i + far]);
    }
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    topk(const float *__restrict__ x, float *value, int *column, key *part, int R, int N)
{
    __shared__ key lists[ROWS][WARPS][8];
    int at = blockIdx.x * ROWS + threadIdx.y, lane = threadIdx.x % 32;
    int length = ((N + SPLIT - 1) / SPLIT + 3) / 4 * 4;
    int begin = min(N, (int)blockIdx.y * length), end = at < R ? min(N, begin + length) : begin;
    const float *row = x + (long long)(at < R ? at : 0) * N;
    int last = N % VEC == 0 ? begin + (end - begin) / VEC * VEC : begin;
    key list[8];

#pragma unroll
    for (int i = 0; i < 8; i++)
        list[i] = 0;
    for (int i = begin + (int)threadIdx.x * VEC; i < last; i += THREADS * VEC * UNROLL) {
        pack p[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (i + u * THREADS * VEC < last)
                p[u] = *(const pack *)(row + i + u * THREADS * VEC);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (i + u * THREADS * VEC < last)
#pragma unroll
                for (int e = 0; e < VEC; e++)
                    insert(list, make_key(p[u].at[e], i + u * THREADS * VEC + e));
    }
    for (int i = last + (int)threadIdx.x; i < end; i += THREADS)
        insert(list, make_key(row[i], i));
    merge(list);
    if (WARPS > 1) {
        if (lane == 0) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                lists[threadIdx.y][threadIdx.x / 32][i] = list[i];
        }
        __syncthreads();
        if (threadIdx.x >= 32)
            return;
#pragma unroll
        for (int i = 0; i < 8; i++)
            list[i] = lane < WARPS ? lists[threadIdx.y][lane < WARPS ? lane : 0][i] : 0;
        merge(list);
    }
    if (lane != 0 || at >= R)
        return;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        if (SPLIT > 1) {
            part[((long long)at * SPLIT + blockIdx.y) * 8 + i] = list[i];
        } else {
            value[at * 8LL + i] = key_value(list[i]);
            column[at * 8LL + i] = ~(unsigned)list[i];
        }
    }
}

extern "C" __global__ void finish(const key *part, float *value, int *column, int R)
{
    int at = blockIdx.x * 128 + threadIdx.x;
    key list[8];

    if (at >= R)
        return;
#pragma unroll
    for (int i = 0; i < 8; i++)
        list[i] = part[(long long)at * SPLIT * 8 + i];
    for (int i = 8; i < 8 * SPLIT; i++) {
        key k = part[(long long)at * SPLIT * 8 + i];
        if (k > list[7])
            list[7] = k;
#pragma unroll
        for (int j = 7; j > 0; j--)
            order(list[j - 1], list[j]);
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        value[at * 8LL + i] = key_value(list[i]);
        column[at * 8LL + i] = ~(unsigned)list[i];
    }
}
