//@ tune KEEP in (0, 1)
//@ tune THREADS in (8, 16, 32, 64, 128, 256, 512, 1024)
//@ tune ROWS in (1, 2, 4, 8, 16, 32) if THREADS * ROWS >= 64 && THREADS * ROWS <= 1024
//@ tune VEC in (1, 2, 4, 8)
//@ tune ITEMS in (1, 2, 4, 8)
//@ tune MOMENTS in (0, 1, 2)
//@ tune MASK in (0, 1) if MOMENTS == 0 || MASK == 1
// Layer normalisation; THREADS threads work on a row, a block on ROWS rows.
// KEEP    where a row is between the passes: 0 in memory, 1 in registers (rows that do not fit are
//         read again).
// VEC     elements of one load or store.
// ITEMS   vectors of one thread in registers, or how far loops are unrolled.
// MOMENTS 0 the mean, then the squares of the differences; 1 sum and sum of squares in one pass; 2
//         mean and squares in one pass, updated with every vector.
// MASK    with MOMENTS=0: 1 leaves out of the squares what lies beyond the end of the row.
//@ launch layernorm grid=(ceildiv(R, ROWS)) block=(THREADS, ROWS) args=(x, w, b, y, R, N, eps)
#include <cuda_fp16.h>

#define ALL 0xffffffffu
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

// Some elements' number, mean, and sum of squares of the differences from it. With MOMENTS=1 mean
// is the sum and squares that of the elements themselves.
struct moments {
    float count, mean, squares;
};

// Elements at, at + 1 and so on of a row, 0 beyond its end.
static __device__ __forceinline__ pack load(const __half *row, int at, int N)
{
    raw r;
    pack p;

#pragma unroll
    for (int e = 0; e < VEC; e++)
        r.part[e] = 0;
    if (N % VEC == 0) {
        if (at < N)
            r.whole = *(const vector *)(row + at);
    } else {
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            if (at + e < N)
                r.part[e] = __half_as_ushort(row[at + e]);
        }
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.value[e] = __half2float(__ushort_as_half(r.part[e]));
    return p;
}

static __device__ __forceinline__ void store(__half *row, int at, int N, pack p)
{
    raw r;

#pragma unroll
    for (int e = 0; e < VEC; e++)
        r.part[e] = __half_as_ushort(__float2half(p.value[e]));
    if (N % VEC == 0) {
        if (at < N)
            *(vector *)(row + at) = r.whole;
        return;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        if (at + e < N)
            row[at + e] = __ushort_as_half(r.part[e]);
    }
}

static __device__ __forceinline__ moments merge(moments a, moments b)
{
    moments m;

    m.count = a.count + b.count;
    if (MOMENTS == 2) {
        float d = b.mean - a.mean, share = m.count > 0 ? b.count / m.count : 0;
        m.mean = a.mean + d * share;
        m.squares = a.squares + b.squares + d * d * a.count * share;
    } else {
        m.mean = a.mean + b.mean;
        m.squares = a.squares + b.squares;
    }
    return m;
}

// Over the THREADS threads of a row; all threads of the block take part.
static __device__ __forceinline__ moments reduce(moments m)
{
#pragma unroll
    for (int step = (THREADS < 32 ? THREADS : 32) / 2; step > 0; step /= 2) {
        moments other;
        other.count = __shfl_xor_sync(ALL, m.count, step);
        other.mean = __shfl_xor_sync(ALL, m.mean, step);
        other.squares = __shfl_xor_sync(ALL, m.squares, step);
        m = merge(m, other);
    }
    if (THREADS > 32) {
        __shared__ moments part[ROWS][(THREADS + 31) / 32];
        if (threadIdx.x % 32 == 0)
            part[threadIdx.y][threadIdx.x / 32] = m;
        __syncthreads();
        m = part[threadIdx.y][0];
        for (int i = 1; i < THREADS / 32; i++)
            m = merge(m, part[threadIdx.y][i]);
        __syncthreads();
    }
    return m;
}

// Adds elements at, at + 1 and so on.
static __device__ __forceinline__ void include(moments *m, pack p, int at, int N)
{
    if (MOMENTS == 2) {
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            if (at + e < N) {
                float d = p.value[e] - m->mean;
                m->count += 1;
                m->mean += __fdividef(d, m->count);
                m->squares += d * (p.value[e] - m->mean);
            }
        }
    } else {
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            m->mean += p.value[e];
            if (MOMENTS == 1)
                m->squares += p.value[e] * p.value[e];
        }
    }
}

static __device__ __forceinline__ float squares_of(pack p, float mean, int at, int N)
{
    float sum = 0;
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        float d = p.value[e] - mean;
        if (!MASK || at + e < N)
            sum += d * d;
    }
    return sum;
}

static __device__ __forceinline__ pack result(pack p, float mean, float factor, pack w, pack b)
{
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.value[e] = (p.value[e] - mean) * factor * w.value[e] + b.value[e];
    return p;
}

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    layernorm(const __half *x, const __half *w, const __half *b, __half *y, int R, int N, float eps)
{
    int row = (int)blockIdx.x * ROWS + (int)threadIdx.y;
    int n = row < R ? N : 0, first = (int)threadIdx.x * VEC;
    bool fits = KEEP == 1 && N <= ITEMS * STEP;
    moments m = {0, 0, 0};
    float mean, variance, factor;
    pack p[ITEMS];

    x += (long long)row * N;
    y += (long long)row * N;
    if (fits) {
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            p[k] = load(x, first + k * STEP, n == 0 ? 0 : N);
            include(&m, p[k], first + k * STEP, n);
        }
    } else {
#pragma unroll ITEMS
        for (int at = first; at < n; at += STEP)
            include(&m, load(x, at, N), at, N);
    }
    m = reduce(m);
    mean = MOMENTS == 2 ? m.mean : m.mean / N;
    if (MOMENTS == 0) {
        moments d = {0, 0, 0};
        if (fits) {
#pragma unroll
            for (int k = 0; k < ITEMS; k++)
                d.squares += squares_of(p[k], mean, first + k * STEP, N);
        } else {
#pragma unroll ITEMS
            for (int at = first; at < n; at += STEP)
                d.squares += squares_of(load(x, at, N), mean, at, N);
        }
        m.squares = reduce(d).squares;
    }
    variance = m.squares / N - (MOMENTS == 1 ? mean * mean : 0);
    factor = rsqrtf(fmaxf(variance, 0) + eps);
    if (fits) {
#pragma unroll
        for (int k = 0; k < ITEMS; k++) {
            int at = first + k * STEP;
            if (at < n)
                store(y, at, N, result(p[k], mean, factor, load(w, at, N), load(b, at, N)));
        }
    } else {
#pragma unroll ITEMS
        for (int at = first; at < n; at += STEP)
            store(y, at, N, result(load(x, at, N), mean, factor, load(w, at, N), load(b, at, N)));
    }
}
