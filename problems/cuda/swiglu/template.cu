//@ tune WALK in (0, 1, 2)
//@ tune THREADS in (64, 128, 256, 512, 1024)
//@ tune VEC in (1, 2, 4, 8)
//@ tune ITEMS in (1, 2, 4, 8)
//@ tune WAVES in (1, 2, 4, 8) if WALK == 2 || WAVES == 1
//@ tune FORM in (0, 1, 2)
//@ tune HINT in (0, 1)
//@ tune REST in (0, 1) if VEC > 1 || REST == 1
// y = silu(gate) up, gate and up being the halves of a row of x, by vectors of VEC elements.
// WALK  0 a block does a piece of one row, 1 a piece of all vectors in their order, 2 the grid has
//       132 * WAVES blocks and goes through all vectors.
// ITEMS vectors of one thread (with WALK=2 of one round), all loaded before the first is used.
// FORM  of the sigmoid: 0 expf and division, 1 the fast ones, 2 the hardware's tanh.
// HINT  1 tells the caches that nothing is used twice.
// REST  1 does the last elements of a row that is no whole number of vectors.
//@ launch swiglu grid=(R, ceildiv(N, THREADS*VEC*ITEMS)) block=(THREADS) args=(x, y, R, N) if=(WALK == 0)
//@ launch swiglu grid=(ceildiv(R*ceildiv(N, VEC), THREADS*ITEMS)) block=(THREADS) args=(x, y, R, N) if=(WALK == 1)
//@ launch swiglu grid=(132*WAVES) block=(THREADS) args=(x, y, R, N) if=(WALK == 2)
#include <cuda_bf16.h>

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef unsigned short type; };
template <> struct vector_of<2> { typedef unsigned type; };
template <> struct vector_of<4> { typedef uint2 type; };
template <> struct vector_of<8> { typedef uint4 type; };

typedef vector_of<VEC>::type vector;

union pack {
    vector whole;
    unsigned short part[VEC];
};

// Elements at, at + 1 and so on of a half row of N, as far as they exist.
static __device__ __forceinline__ pack load(const __nv_bfloat16 *row, int at, int N)
{
    pack p;

    if (N % VEC == 0) {
        const vector *from = (const vector *)(row + at);
        p.whole = HINT ? __ldcs(from) : *from;
        return p;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.part[e] = at + e < N ? __bfloat16_as_ushort(row[at + e]) : 0;
    return p;
}

static __device__ __forceinline__ void store(__nv_bfloat16 *row, int at, int N, pack p)
{
    if (N % VEC == 0) {
        vector *to = (vector *)(row + at);
        if (HINT)
            __stcs(to, p.whole);
        else
            *to = p.whole;
        return;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        if (at + e < N)
            row[at + e] = __ushort_as_bfloat16(p.part[e]);
    }
}

static __device__ __forceinline__ float silu(float x)
{
#if FORM == 0
    return x / (1 + expf(-x));
#elif FORM == 1
    return __fdividef(x, 1 + __expf(-x));
#else
    float t;
    asm("tanh.approx.f32 %0, %1;" : "=f"(t) : "f"(0.5f * x));
    return 0.5f * x * (1 + t);
#endif
}

static __device__ __forceinline__ pack gated(pack gate, pack up)
{
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        float g = __bfloat162float(__ushort_as_bfloat16(gate.part[e]));
        float u = __bfloat162float(__ushort_as_bfloat16(up.part[e]));
        gate.part[e] = __bfloat16_as_ushort(__float2bfloat16(silu(g) * u));
    }
    return gate;
}

// Vectors first, first + step and so on, ITEMS of them, as far as they are below `count`; they
// begin in `row`. Every row has `each` of them.
static __device__ __forceinline__ void update(const __nv_bfloat16 *x, __nv_bfloat16 *y, int row,
                                              int first, int step, int count, int each, int N)
{
    pack gate[ITEMS], up[ITEMS];
    long long r[ITEMS];
    int at[ITEMS];

#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        int i = first + k * step;
        r[k] = WALK == 0 ? row : i / each;
        at[k] = (WALK == 0 ? i : i % each) * VEC;
        if (i < count) {
            gate[k] = load(x + r[k] * 2 * N, at[k], N);
            up[k] = load(x + r[k] * 2 * N + N, at[k], N);
        }
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (first + k * step < count)
            store(y + r[k] * N, at[k], N, gated(gate[k], up[k]));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    swiglu(const __nv_bfloat16 *x, __nv_bfloat16 *y, int R, int N)
{
    int each = REST ? (N + VEC - 1) / VEC : N / VEC, all = (int)gridDim.x * THREADS;
    int me = (int)threadIdx.x;

    if (each == 0)
        return;
    if (WALK == 0) {
        int first = (int)blockIdx.y * THREADS * ITEMS + me;
        update(x, y, (int)blockIdx.x, first, THREADS, each, each, N);
    } else if (WALK == 1) {
        update(x, y, 0, (int)blockIdx.x * THREADS * ITEMS + me, THREADS, R * each, each, N);
    } else {
        for (int first = (int)blockIdx.x * THREADS + me; first < R * each; first += all * ITEMS)
            update(x, y, 0, first, all, R * each, each, N);
    }
}
