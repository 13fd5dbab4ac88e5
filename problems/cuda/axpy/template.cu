//@ tune WALK in (0, 1, 2)
//@ tune THREADS in (32, 64, 128, 256, 512, 1024)
//@ tune VEC in (1, 2, 4)
//@ tune ITEMS in (1, 2, 4, 8)
//@ tune WAVES in (1, 2, 4, 8) if WALK == 2 || WAVES == 1
//@ tune HINT in (0, 1, 2)
//@ tune REST in (0, 1) if VEC > 1 || REST == 1
// y += a x by vectors of VEC floats.
// WALK  which vectors a thread takes: 0 every THREADS-th of its block, 1 ITEMS neighbours, 2 by
//       the stride of the whole grid, with 132 * WAVES blocks.
// ITEMS vectors of one thread; with WALK=2 those of one round, all loaded before the first is used.
// HINT  0 none, 1 nothing is used twice, 2 loads leave out the first-level cache.
// REST  1 does the last elements, where N is no whole number of vectors.
//@ launch axpy grid=(ceildiv(N, THREADS*ITEMS*VEC)) block=(THREADS) args=(x, y, N, a) if=(WALK < 2)
//@ launch axpy grid=(132*WAVES) block=(THREADS) args=(x, y, N, a) if=(WALK == 2)

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef float type; };
template <> struct vector_of<2> { typedef float2 type; };
template <> struct vector_of<4> { typedef float4 type; };

typedef vector_of<VEC>::type vector;

union pack {
    vector whole;
    float value[VEC];
};

static __device__ __forceinline__ vector load(const vector *from)
{
    return HINT == 1 ? __ldcs(from) : HINT == 2 ? __ldcg(from) : *from;
}

static __device__ __forceinline__ void store(vector *to, vector value)
{
    if (HINT == 1)
        __stcs(to, value);
    else
        *to = value;
}

// The vectors first, first + step and so on, ITEMS of them, as far as they are below `count`.
static __device__ __forceinline__ void update(const vector *x, vector *y, int first, int step,
                                              int count, float a)
{
    pack p[ITEMS], q[ITEMS];

#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (first + k * step < count) {
            p[k].whole = load(x + first + k * step);
            q[k].whole = load(y + first + k * step);
        }
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (first + k * step < count) {
#pragma unroll
            for (int e = 0; e < VEC; e++)
                q[k].value[e] = fmaf(a, p[k].value[e], q[k].value[e]);
            store(y + first + k * step, q[k].whole);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) axpy(const float *x, float *y, int N, float a)
{
    const vector *xv = (const vector *)x;
    vector *yv = (vector *)y;
    int count = N / VEC, me = (int)blockIdx.x * THREADS + (int)threadIdx.x;
    int all = (int)gridDim.x * THREADS;

    if (WALK == 0) {
        update(xv, yv, (int)blockIdx.x * THREADS * ITEMS + (int)threadIdx.x, THREADS, count, a);
    } else if (WALK == 1) {
        update(xv, yv, me * ITEMS, 1, count, a);
    } else {
        for (int first = me; first < count; first += all * ITEMS)
            update(xv, yv, first, all, count, a);
    }
    if (REST && me < N % VEC)
        y[count * VEC + me] = fmaf(a, x[count * VEC + me], y[count * VEC + me]);
}
