//@ tune ALGO in (0, 1, 2)
//@ tune BLOCK in (128, 256, 512, 1024)
//@ tune ITEMS in (1, 4, 8, 16)
//@ tune VEC in (1, 2, 4) if ITEMS % VEC == 0
//@ tune STAGE in (0, 1) if ITEMS > 1 || STAGE == 0
//@ tune LADDER in (0, 1)
//@ tune SPINE in (0, 1) if ALGO < 2 || SPINE == 0
//@ tune LOOK in (0, 1) if ALGO == 2 || LOOK == 0
// Inclusive prefix sum in tiles of BLOCK * ITEMS elements.
// ALGO   0 sums the tiles, scans the sums, scans the tiles; 1 scans the tiles, scans their sums, adds
//        these; 2 does it in one pass: a tile waits for the sums of those before it.
// VEC    floats of one load or store. STAGE 1 exchanges them through shared memory, so that the
//        threads of a warp read neighbours.
// LADDER 0 scans a block by shuffles, 1 in shared memory.
// SPINE  how the sums of the tiles are scanned: 0 in rounds of 1024, 1 all at once, 4 per thread.
// LOOK   in ALGO 2: 0 one thread looks at one tile after the other, 1 a warp at 32 at once.
//@ scratch part bytes=4 * ceildiv(N, BLOCK * ITEMS)
//@ scratch state bytes=8 * ceildiv(N, BLOCK * ITEMS) init=zero
//@ scratch ticket bytes=4 init=zero
//@ launch sum_tiles grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(x, part, N) if=(ALGO == 0)
//@ launch scan_local grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(x, y, part, N) if=(ALGO == 1)
//@ launch scan_sums grid=(1) block=(1024) args=(part, ceildiv(N, BLOCK * ITEMS)) if=(ALGO < 2)
//@ launch scan_tiles grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(x, y, part, N) if=(ALGO == 0)
//@ launch add_sums grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(y, part, N) if=(ALGO == 1)
//@ launch scan_once grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(x, y, state, ticket, N) if=(ALGO == 2)

#define TILE (BLOCK * ITEMS)
#define ALL 0xffffffffu

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef float type; };
template <> struct vector_of<2> { typedef float2 type; };
template <> struct vector_of<4> { typedef float4 type; };

union pack {
    vector_of<VEC>::type vector;
    float value[VEC];
};

// One place is left out after 32, so that threads that are ITEMS places apart use different banks.
#define PLACE(i) ((i) + (i) / 32)
#if STAGE
#define STAGED __shared__ float tile[PLACE(TILE)]
#else
#define STAGED float *tile = 0
#endif

// v[k] becomes element base + threadIdx.x * ITEMS + k, 0 beyond the end.
static __device__ __forceinline__ void load_tile(const float *x, long long base, int N, float *tile,
                                                 float v[ITEMS])
{
    bool whole = base + TILE <= N;
#pragma unroll
    for (int k = 0; k < ITEMS; k += VEC) {
        int at = STAGE ? k * BLOCK + (int)threadIdx.x * VEC : (int)threadIdx.x * ITEMS + k;
        pack p;
        if (whole) {
            p.vector = *(const vector_of<VEC>::type *)(x + base + at);
        } else {
#pragma unroll
            for (int e = 0; e < VEC; e++)
                p.value[e] = base + at + e < N ? x[base + at + e] : 0;
        }
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            if (STAGE)
                tile[PLACE(at + e)] = p.value[e];
            else
                v[k + e] = p.value[e];
        }
    }
    if (STAGE) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            v[k] = tile[PLACE((int)threadIdx.x * ITEMS + k)];
    }
}

static __device__ __forceinline__ void store_tile(float *y, long long base, int N, float *tile,
                                                  const float v[ITEMS])
{
    bool whole = base + TILE <= N;
    if (STAGE) {
        __syncthreads();
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            tile[PLACE((int)threadIdx.x * ITEMS + k)] = v[k];
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k += VEC) {
        int at = STAGE ? k * BLOCK + (int)threadIdx.x * VEC : (int)threadIdx.x * ITEMS + k;
        pack p;
#pragma unroll
        for (int e = 0; e < VEC; e++)
            p.value[e] = STAGE ? tile[PLACE(at + e)] : v[k + e];
        if (whole) {
            *(vector_of<VEC>::type *)(y + base + at) = p.vector;
        } else {
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                if (base + at + e < N)
                    y[base + at + e] = p.value[e];
            }
        }
    }
}

// The sum of `value` over the threads before this one; *ret_total over all THREADS of the block.
template <int THREADS>
static __device__ __forceinline__ float scan_block(float value, float *ret_total)
{
#if LADDER
    __shared__ float rung[2][THREADS];
    int from = 0, me = (int)threadIdx.x;
    float before;

    rung[0][me] = value;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        float sum = rung[from][me];
        if (me >= step)
            sum += rung[from][me - step];
        from = 1 - from;
        rung[from][me] = sum;
        __syncthreads();
    }
    *ret_total = rung[from][THREADS - 1];
    before = me > 0 ? rung[from][me - 1] : 0;
    __syncthreads();
    return before;
#else
    __shared__ float warp_sum[THREADS / 32];
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    float sum = value, before;

#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        float other = __shfl_up_sync(ALL, sum, step);
        if (lane >= step)
            sum += other;
    }
    if (lane == 31)
        warp_sum[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        float part = lane < THREADS / 32 ? warp_sum[lane] : 0;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            float other = __shfl_up_sync(ALL, part, step);
            if (lane >= step)
                part += other;
        }
        if (lane < THREADS / 32)
            warp_sum[lane] = part;
    }
    __syncthreads();
    before = warp > 0 ? warp_sum[warp - 1] : 0;
    *ret_total = warp_sum[THREADS / 32 - 1];
    __syncthreads();
    sum = __shfl_up_sync(ALL, sum, 1);
    return lane > 0 ? before + sum : before;
#endif
}

// v becomes the scan of the thread's elements; returns what the threads before have, without the
// tiles before.
static __device__ __forceinline__ float scan_tile(float v[ITEMS], float *ret_total)
{
#pragma unroll
    for (int k = 1; k < ITEMS; k++)
        v[k] += v[k - 1];
    return scan_block<BLOCK>(v[ITEMS - 1], ret_total);
}

static __device__ __forceinline__ void add(float v[ITEMS], float offset)
{
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        v[k] += offset;
}

extern "C" __global__ void __launch_bounds__(BLOCK) sum_tiles(const float *x, float *part, int N)
{
    long long base = (long long)blockIdx.x * TILE;
    float sum = 0, total;

    // Any order will do, so the threads of a warp read neighbours without shared memory.
#pragma unroll
    for (int k = 0; k < ITEMS; k += VEC) {
        long long at = base + k * BLOCK + (int)threadIdx.x * VEC;
        if (base + TILE <= N) {
            pack p;
            p.vector = *(const vector_of<VEC>::type *)(x + at);
#pragma unroll
            for (int e = 0; e < VEC; e++)
                sum += p.value[e];
        } else {
            for (int e = 0; e < VEC; e++)
                sum += at + e < N ? x[at + e] : 0;
        }
    }
    (void)scan_block<BLOCK>(sum, &total);
    if (threadIdx.x == 0)
        part[blockIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    scan_local(const float *x, float *y, float *part, int N)
{
    STAGED;
    long long base = (long long)blockIdx.x * TILE;
    float v[ITEMS], total;

    load_tile(x, base, N, tile, v);
    add(v, scan_tile(v, &total));
    store_tile(y, base, N, tile, v);
    if (threadIdx.x == 0)
        part[blockIdx.x] = total;
}

// part becomes what stands before each tile.
extern "C" __global__ void __launch_bounds__(1024) scan_sums(float *part, int tiles)
{
    float total;
#if SPINE
    float v[4], before;

    for (int k = 0; k < 4; k++) {
        int i = (int)threadIdx.x * 4 + k;
        v[k] = i < tiles ? part[i] : 0;
    }
    before = scan_block<1024>(v[0] + v[1] + v[2] + v[3], &total);
    for (int k = 0; k < 4; k++) {
        int i = (int)threadIdx.x * 4 + k;
        if (i < tiles)
            part[i] = before;
        before += v[k];
    }
#else
    float carry = 0;

    for (int base = 0; base < tiles; base += 1024) {
        int i = base + (int)threadIdx.x;
        float before = scan_block<1024>(i < tiles ? part[i] : 0, &total);
        if (i < tiles)
            part[i] = carry + before;
        carry += total;
    }
#endif
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    scan_tiles(const float *x, float *y, const float *part, int N)
{
    STAGED;
    long long base = (long long)blockIdx.x * TILE;
    float v[ITEMS], total;

    load_tile(x, base, N, tile, v);
    add(v, scan_tile(v, &total) + part[blockIdx.x]);
    store_tile(y, base, N, tile, v);
}

extern "C" __global__ void __launch_bounds__(BLOCK) add_sums(float *y, const float *part, int N)
{
    long long base = (long long)blockIdx.x * TILE;
    float offset = part[blockIdx.x];

#pragma unroll
    for (int k = 0; k < ITEMS; k += VEC) {
        long long at = base + k * BLOCK + (int)threadIdx.x * VEC;
        if (base + TILE <= N) {
            pack p;
            p.vector = *(const vector_of<VEC>::type *)(y + at);
#pragma unroll
            for (int e = 0; e < VEC; e++)
                p.value[e] += offset;
            *(vector_of<VEC>::type *)(y + at) = p.vector;
        } else {
            for (int e = 0; e < VEC; e++) {
                if (at + e < N)
                    y[at + e] += offset;
            }
        }
    }
}

// ---- one pass ----

// A tile's word: 0 nothing yet, 1 the sum of the tile, 2 the sum of all up to and with it. Sum and
// state are one word, so that nobody sees one without the other.
static __device__ void publish(volatile unsigned long long *word, unsigned state, float sum)
{
    *word = (unsigned long long)state << 32 | __float_as_uint(sum);
}

#if LOOK == 0
// By one thread.
static __device__ float sum_before(volatile unsigned long long *state, int tile)
{
    float sum = 0;
    unsigned is;

    for (int at = tile - 1; at >= 0; at--) {
        unsigned long long word;
        do {
            word = state[at];
            is = (unsigned)(word >> 32);
        } while (is == 0);
        sum += __uint_as_float((unsigned)word);
        if (is == 2)
            break;
    }
    return sum;
}
#else
// By one warp; every lane gets the sum. Before the first tile there is a sum of nothing.
static __device__ float sum_before(volatile unsigned long long *state, int tile)
{
    int lane = (int)threadIdx.x;
    float sum = 0;

    for (int last = tile - 1; last >= 0; last -= 32) {
        int at = last - lane;
        unsigned long long word;
        unsigned whole;
        float value;
        do {
            word = at >= 0 ? state[at] : 2ULL << 32;
        } while (!__all_sync(ALL, word >> 32 != 0));
        whole = __ballot_sync(ALL, word >> 32 == 2);
        value = whole == 0 || lane <= __ffs((int)whole) - 1 ? __uint_as_float((unsigned)word) : 0;
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
            value += __shfl_xor_sync(ALL, value, step);
        sum += value;
        if (whole != 0)
            break;
    }
    return sum;
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK)
    scan_once(const float *x, float *y, unsigned long long *state, unsigned *ticket, int N)
{
    STAGED;
    __shared__ unsigned my_tile;
    __shared__ float my_offset;
    float v[ITEMS], total, before;
    long long base;
    int number;

    // Tiles are taken in the order in which blocks start: nobody waits for a block that cannot run.
    if (threadIdx.x == 0)
        my_tile = atomicAdd(ticket, 1u);
    __syncthreads();
    number = (int)my_tile;
    base = (long long)number * TILE;
    load_tile(x, base, N, tile, v);
    before = scan_tile(v, &total);
    if (threadIdx.x == 0)
        publish(&state[number], number == 0 ? 2 : 1, total);
    if (threadIdx.x < (LOOK ? 32 : 1)) {
        float offset = sum_before(state, number);
        if (threadIdx.x == 0) {
            if (number > 0)
                publish(&state[number], 2, offset + total);
            my_offset = offset;
        }
    }
    __syncthreads();
    add(v, before + my_offset);
    store_tile(y, base, N, tile, v);
}
