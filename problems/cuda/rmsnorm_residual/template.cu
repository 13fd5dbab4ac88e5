//@ tune KEEP in (0, 1, 2)
//@ tune THREADS in (32, 64, 128, 256, 512, 1024)
//@ tune ROWS in (1, 2, 4, 8) if THREADS * ROWS <= 1024
//@ tune VEC in (1, 2, 4, 8)
//@ tune ITEMS in (1, 2, 4, 8)
//@ tune EARLY in (0, 1) if KEEP == 1 || EARLY == 0
//@ tune SUM in (0, 1)
//@ tune HINT in (0, 1)
// h += x, y = normalised h times w; THREADS threads work on a row, a block on ROWS rows.
// KEEP  where the sums are until they are normalised: 0 in memory, 1 in registers (rows that do not
//       fit go by way of memory), 2 in shared memory.
// VEC   elements of one load or store.
// ITEMS vectors of one thread in registers, or how far loops are unrolled.
// EARLY 1 loads the weights before the sum of squares is known.
// SUM   of a thread's squares: 0 in float, 1 in bfloat16, cut off.
// HINT  1 tells the caches that x and y are not used twice.
//@ launch rmsnorm_residual grid=(ceildiv(R, ROWS)) block=(THREADS, ROWS) args=(x, h, w, y, R, N, eps) if=(KEEP < 2)
//@ launch rmsnorm_residual grid=(ceildiv(R, ROWS)) block=(THREADS, ROWS) args=(x, h, w, y, R, N, eps) smem=(16*ROWS*ceildiv(N, 8)) if=(KEEP == 2)
#include <cuda_bf16.h>

#define STEP (THREADS * VEC)

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef unsigned short type; };
template <> struct vector_of<2> { typedef unsigned type; };
template <> struct vector_of<4> { typedef uint2 type; };
template <> struct vector_of<8> { typedef uint4 type; };

typedef vector_of<VEC>::type vector;

union raw {
    vector whole;
    unsigned short part[VEC];
};

struct pack {
    float value[VEC];
};

// Elements at, at + 1 and so on of a row, 0 beyond its end.
template <bool ONCE>
static __device__ __forceinline__ pack load(const __nv_bfloat16 *row, int at, int N)
{
    raw r;
    pack p;

#pragma unroll
    for (int e = 0; e < VEC; e++)
        r.part[e] = 0;
    if (N % VEC == 0) {
        const vector *from = (const vector *)(row + at);
        if (at < N)
            r.whole = ONCE && HINT ? __ldcs(from) : *from;
    } else {
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            if (at + e < N)
                r.part[e] = __bfloat16_as_ushort(row[at + e]);
        }
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.value[e] = __bfloat162float(__ushort_as_bfloat16(r.part[e]));
    return p;
}

template <bool ONCE>
static __device__ __forceinline__ void store(__nv_bfloat16 *row, int at, int N, pack p)
{
    raw r;

#pragma unroll
    for (int e = 0; e < VEC; e++)
        r.part[e] = __bfloat16_as_ushort(__float2bfloat16(p.value[e]));
    if (N % VEC == 0) {
        if (at >= N)
            return;
        if (ONCE && HINT)
            __stcs((vector *)(row + at), r.whole);
        else
            *(vector *)(row + at) = r.whole;
        return;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        if (at + e < N)
            row[at + e] = __ushort_as_bfloat16(r.part[e]);
    }
}

static __device__ __forceinline__ pack add(pack a, pack b)
{
#pragma unroll
    for (int e = 0; e < VEC; e++)
        a.value[e] += b.value[e];
    return a;
}

static __device__ __forceinline__ pack scaled(pack p, float factor, pack w)
{
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.value[e] *= factor * w.value[e];
    return p;
}

static __device__ __forceinline__ float add_squares(float sum, pack p)
{
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        sum = fmaf(p.value[e], p.value[e], sum);
        if (SUM == 1)
            sum = __uint_as_float(__float_as_uint(sum) & 0xffff0000u);
    }
    return sum;
}

// Over the THREADS threads of a row; all threads of the block take part.
static __device__ __forceinline__ float reduce(float value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    if (THREADS > 32) {
        __shared__ float part[ROWS][THREADS / 32];
        if (threadIdx.x % 32 == 0)
            part[threadIdx.y][threadIdx.x / 32] = value;
        __syncthreads();
        value = 0;
#pragma unroll
        for (int i = 0; i < THREADS / 32; i++)
            value += part[threadIdx.y][i];
    }
    return value;
}

// n is N, or 0 for a row beyond the last one. `kept` is h itself or in shared memory.
static __device__ __forceinline__ void by_memory(const __nv_bfloat16 *x, __nv_bfloat16 *h,
                                                 __nv_bfloat16 *kept, const __nv_bfloat16 *w,
                                                 __nv_bfloat16 *y, int N, int n, float eps)
{
    int first = (int)threadIdx.x * VEC;
    float sum = 0, factor;

#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP) {
        pack p = add(load<true>(x, at, N), load<false>(h, at, N));
        store<false>(h, at, N, p);
        if (KEEP == 2)
            store<false>(kept, at, N, p);
        sum = add_squares(sum, p);
    }
    factor = rsqrtf(reduce(sum) / N + eps);
#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP) {
        pack p = scaled(load<false>(kept, at, N), factor, load<false>(w, at, N));
        store<true>(y, at, N, p);
    }
}

static __device__ __forceinline__ void by_registers(const __nv_bfloat16 *x, __nv_bfloat16 *h,
                                                    const __nv_bfloat16 *w, __nv_bfloat16 *y, int N,
                                                    int n, float eps)
{
    int first = (int)threadIdx.x * VEC;
    float sum = 0, factor;
    pack p[ITEMS], weight[ITEMS];

#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int at = first + k * STEP;
        if (EARLY)
            weight[k] = load<false>(w, at, N);
        if (at < n) {
            p[k] = add(load<true>(x, at, N), load<false>(h, at, N));
            sum = add_squares(sum, p[k]);
        }
    }
    factor = rsqrtf(reduce(sum) / N + eps);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int at = first + k * STEP;
        if (at < n) {
            store<false>(h, at, N, p[k]);
            if (!EARLY)
                weight[k] = load<false>(w, at, N);
            store<true>(y, at, N, scaled(p[k], factor, weight[k]));
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    rmsnorm_residual(const __nv_bfloat16 *x, __nv_bfloat16 *h, const __nv_bfloat16 *w,
                     __nv_bfloat16 *y, int R, int N, float eps)
{
    extern __shared__ uint4 memory[];
    int row = (int)blockIdx.x * ROWS + (int)threadIdx.y;
    int n = row < R ? N : 0;

    x += (long long)row * N;
    h += (long long)row * N;
    y += (long long)row * N;
    if (KEEP == 1 && N <= ITEMS * STEP) {
        by_registers(x, h, w, y, N, n, eps);
    } else if (KEEP == 2) {
        __nv_bfloat16 *kept = (__nv_bfloat16 *)(memory + (N + 7) / 8 * (int)threadIdx.y);
        by_memory(x, h, kept, w, y, N, n, eps);
    } else {
        by_memory(x, h, h, w, y, N, n, eps);
    }
}
