//@ tune KEEP in (0, 1, 2, 3)
//@ tune THREADS in (32, 64, 128, 256, 512, 1024)
//@ tune ROWS in (1, 2, 4, 8) if THREADS * ROWS <= 1024
//@ tune VEC in (1, 2, 4)
//@ tune ITEMS in (1, 2, 4, 8)
//@ tune EXP in (0, 1, 2)
//@ tune LONG in (0, 1) if KEEP == 2 || LONG == 1
// Softmax of rows; THREADS threads work on a row, a block on ROWS rows.
// KEEP  where a row is between its passes: 0 in memory, three passes; 1 in memory, two passes with
//       a running maximum; 2 in registers; 3 in shared memory.
// VEC   floats of one load or store.
// ITEMS vectors of one thread in registers, or how far loops are unrolled.
// EXP   0 expf, 1 __expf, 2 exp2f of scaled arguments.
// LONG  with KEEP=2, a row that does not fit the registers is read three times.
//@ launch softmax grid=(ceildiv(R, ROWS)) block=(THREADS, ROWS) args=(x, y, R, N) if=(KEEP != 3)
//@ launch softmax grid=(ceildiv(R, ROWS)) block=(THREADS, ROWS) args=(x, y, R, N) smem=(16*ROWS*ceildiv(N, 4)) if=(KEEP == 3)

#define ALL 0xffffffffu
#define LOG2E 1.44269504f
#define LOWEST -1e30f // below every element; exp of it is 0
#define STEP (THREADS * VEC)

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef float type; };
template <> struct vector_of<2> { typedef float2 type; };
template <> struct vector_of<4> { typedef float4 type; };

union pack {
    vector_of<VEC>::type vector;
    float value[VEC];
};

// Elements at, at + 1 and so on of a row; LOWEST beyond its end. A row is a whole number of
// vectors and its address aligned to them, or it is read by single elements.
static __device__ __forceinline__ pack load(const float *row, int at, int N)
{
    pack p;
    if (N % VEC == 0) {
        if (at < N) {
            p.vector = *(const vector_of<VEC>::type *)(row + at);
            return p;
        }
#pragma unroll
        for (int e = 0; e < VEC; e++)
            p.value[e] = LOWEST;
        return p;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.value[e] = at + e < N ? row[at + e] : LOWEST;
    return p;
}

static __device__ __forceinline__ void store(float *row, int at, int N, pack p)
{
    if (N % VEC == 0) {
        if (at < N)
            *(vector_of<VEC>::type *)(row + at) = p.vector;
        return;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        if (at + e < N)
            row[at + e] = p.value[e];
    }
}

// exp(x - most). The product with `most` is rounded once and for all elements alike, so that its
// error cancels in the quotient.
static __device__ __forceinline__ float power(float x, float most)
{
#if EXP == 0
    return expf(x - most);
#elif EXP == 1
    return __expf(x - most);
#else
    return exp2f(fmaf(x, LOG2E, -__fmul_rn(most, LOG2E)));
#endif
}

// What a sum relative to `from` must be multiplied by to be relative to `to`.
static __device__ __forceinline__ float rescale(float from, float to)
{
#if EXP == 2
    return exp2f(__fsub_rn(__fmul_rn(from, LOG2E), __fmul_rn(to, LOG2E)));
#else
    return power(from, to);
#endif
}

// Over the THREADS threads of a row; all threads of the block take part.
template <bool LARGEST> static __device__ __forceinline__ float reduce(float value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(ALL, value, step);
        value = LARGEST ? fmaxf(value, other) : value + other;
    }
    if (THREADS > 32) {
        __shared__ float part[ROWS][THREADS / 32];
        if (threadIdx.x % 32 == 0)
            part[threadIdx.y][threadIdx.x / 32] = value;
        __syncthreads();
        value = part[threadIdx.y][0];
#pragma unroll
        for (int i = 1; i < THREADS / 32; i++) {
            float other = part[threadIdx.y][i];
            value = LARGEST ? fmaxf(value, other) : value + other;
        }
        __syncthreads();
    }
    return value;
}

static __device__ __forceinline__ float largest_of(pack p)
{
    float most = p.value[0];
#pragma unroll
    for (int e = 1; e < VEC; e++)
        most = fmaxf(most, p.value[e]);
    return most;
}

// p becomes its exponentials; returns their sum.
static __device__ __forceinline__ float exponentials(pack *p, float most)
{
    float sum = 0;
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        p->value[e] = power(p->value[e], most);
        sum += p->value[e];
    }
    return sum;
}

static __device__ __forceinline__ pack times(pack p, float factor)
{
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.value[e] *= factor;
    return p;
}

// n is N, or 0 for a row beyond the last one.
static __device__ __forceinline__ void in_three_passes(const float *x, float *y, int N, int n)
{
    float most = LOWEST, sum = 0, inverse;
    int first = (int)threadIdx.x * VEC;

#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP)
        most = fmaxf(most, largest_of(load(x, at, N)));
    most = reduce<true>(most);
#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP) {
        pack p = load(x, at, N);
        sum += exponentials(&p, most);
    }
    inverse = 1 / reduce<false>(sum);
#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP) {
        pack p = load(x, at, N);
        (void)exponentials(&p, most);
        store(y, at, N, times(p, inverse));
    }
}

static __device__ __forceinline__ void in_two_passes(const float *x, float *y, int N, int n)
{
    float most = LOWEST, sum = 0, whole, inverse;
    int first = (int)threadIdx.x * VEC;

#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP) {
        pack p = load(x, at, N);
        float higher = fmaxf(most, largest_of(p));
        sum *= rescale(most, higher);
        most = higher;
        sum += exponentials(&p, most);
    }
    whole = reduce<true>(most);
    inverse = 1 / reduce<false>(sum * rescale(most, whole));
#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP) {
        pack p = load(x, at, N);
        (void)exponentials(&p, whole);
        store(y, at, N, times(p, inverse));
    }
}

static __device__ __forceinline__ void in_registers(const float *x, float *y, int N, int n)
{
    float most = LOWEST, sum = 0, inverse;
    int first = (int)threadIdx.x * VEC;
    pack p[ITEMS];

#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (n > 0)
            p[k] = load(x, first + k * STEP, N);
        else
            for (int e = 0; e < VEC; e++)
                p[k].value[e] = LOWEST;
        most = fmaxf(most, largest_of(p[k]));
    }
    most = reduce<true>(most);
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        sum += exponentials(&p[k], most);
    inverse = 1 / reduce<false>(sum);
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        if (n > 0)
            store(y, first + k * STEP, N, times(p[k], inverse));
    }
}

// A thread finds in shared memory what it put there itself.
static __device__ __forceinline__ void in_shared_memory(const float *x, float *y, int N, int n)
{
    extern __shared__ float4 memory[];
    float *kept = (float *)(memory + (N + 3) / 4 * (int)threadIdx.y);
    float most = LOWEST, sum = 0, inverse;
    int first = (int)threadIdx.x * VEC;

#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP) {
        pack p = load(x, at, N);
        most = fmaxf(most, largest_of(p));
        store(kept, at, N, p);
    }
    most = reduce<true>(most);
#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP) {
        pack p = load(kept, at, N);
        sum += exponentials(&p, most);
        store(kept, at, N, p);
    }
    inverse = 1 / reduce<false>(sum);
#pragma unroll ITEMS
    for (int at = first; at < n; at += STEP)
        store(y, at, N, times(load(kept, at, N), inverse));
}

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    softmax(const float *x, float *y, int R, int N)
{
    int row = (int)blockIdx.x * ROWS + (int)threadIdx.y;
    int n = row < R ? N : 0;

    x += (long long)row * N;
    y += (long long)row * N;
    if (KEEP == 0 || (KEEP == 2 && LONG && N > ITEMS * STEP))
        in_three_passes(x, y, N, n);
    else if (KEEP == 1)
        in_two_passes(x, y, N, n);
    else if (KEEP == 2)
        in_registers(x, y, N, n);
    else
        in_shared_memory(x, y, N, n);
}
