//@ tune WARP in (0, 1)
//@ tune BLOCK in (128, 256, 512, 1024)
//@ tune SPLIT in (1, 2, 4, 8) if WARP == 0 || SPLIT == 1
//@ tune VEC in (1, 2, 4, 8)
//@ tune KIND in (0, 1, 2)
//@ tune CACHE in (0, 1) if (WARP == 0 && SPLIT == 1) || CACHE == 0
//@ tune EXP in (0, 1, 2)
//@ tune GUARD in (0, 1) if KIND == 1 || GUARD == 1
// Cross-entropy of every row and its gradient.
// WARP   1: a warp for a row, 0: a block, or SPLIT blocks and two kernels.
// VEC    logits of one load or store, where rows are a multiple of it.
// KIND   0: a pass for the largest logit, one for the sum; 1: one pass for both, which scales the sum
//        whenever the largest grows; 2: a sum without the largest.
// CACHE  the row in shared memory after it was read the first time.
// EXP    0 expf, 1 the fast one, 2 exp2f of logits that were scaled before.
// GUARD  against joining two sums of nothing.
#include <cuda_bf16.h>
//@ scratch part bytes=8 * R * SPLIT
//@ launch fused grid=(ceildiv(R, 1 + WARP * (BLOCK / 32 - 1))) block=(BLOCK) args=(logit, target, upstream, loss, dlogit, R, V) smem=(CACHE * (2 * V + 16)) if=(SPLIT == 1)
//@ launch partial grid=(R * SPLIT) block=(BLOCK) args=(logit, part, V) if=(SPLIT > 1)
//@ launch finish grid=(R * SPLIT) block=(BLOCK) args=(logit, target, upstream, part, loss, dlogit, V) if=(SPLIT > 1)

#define ALL 0xffffffffu
#define TEAM (WARP ? 32 : BLOCK)
#define LOG2E 1.4426950408889634f

template <int BYTES> struct word_of;
template <> struct word_of<2> { typedef unsigned short type; };
template <> struct word_of<4> { typedef unsigned type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<16> { typedef uint4 type; };
typedef word_of<2 * VEC>::type word;

union pack {
    word whole;
    __nv_bfloat16 value[VEC];
};

// The sum of exp(x - most).
struct state {
    float most, sum;
};

// A part of a row: columns from .. to; `wide` when all of it can be read in words.
struct span {
    int from, to;
    bool wide;
};

static __device__ __forceinline__ float power(float x)
{
#if EXP == 0
    return expf(x);
#elif EXP == 1
    return __expf(x);
#else
    return exp2f(x * LOG2E);
#endif
}

// Beyond the end of the span a logit is -infinity.
static __device__ __forceinline__ pack load(const __nv_bfloat16 *x, int i, span s)
{
    pack p;
    if (s.wide) {
        p.whole = *(const word *)(x + i);
    } else {
#pragma unroll
        for (int k = 0; k < VEC; k++)
            p.value[k] = i + k < s.to ? x[i + k] : __float2bfloat16(-INFINITY);
    }
    return p;
}

static __device__ __forceinline__ void store(__nv_bfloat16 *x, int i, span s, pack p)
{
    if (s.wide) {
        *(word *)(x + i) = p.whole;
    } else {
#pragma unroll
        for (int k = 0; k < VEC; k++) {
            if (i + k < s.to)
                x[i + k] = p.value[k];
        }
    }
}

static __device__ __forceinline__ float scale_of(float most, float new_most)
{
    if (GUARD && most == -INFINITY)
        return 0;
    return power(most - new_most);
}

static __device__ __forceinline__ state join(state a, state b)
{
#if KIND == 1
    float most = fmaxf(a.most, b.most);
    return {most, a.sum * scale_of(a.most, most) + b.sum * scale_of(b.most, most)};
#else
    return {fmaxf(a.most, b.most), a.sum + b.sum};
#endif
}

// All threads of the team get the result.
static __device__ __forceinline__ state reduce(state s)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        state other = {__shfl_xor_sync(ALL, s.most, step), __shfl_xor_sync(ALL, s.sum, step)};
        s = join(s, other);
    }
#if !WARP
    __shared__ float most[BLOCK / 32], sum[BLOCK / 32];
    int lane = (int)threadIdx.x % 32;

    if (lane == 0) {
        most[threadIdx.x / 32] = s.most;
        sum[threadIdx.x / 32] = s.sum;
    }
    __syncthreads();
    s.most = lane < BLOCK / 32 ? most[lane] : -INFINITY;
    s.sum = lane < BLOCK / 32 ? sum[lane] : 0;
    // Lanes beyond the number of warps are left out: they join with each other only.
#pragma unroll
    for (int step = BLOCK / 64; step > 0; step /= 2) {
        state other = {__shfl_xor_sync(ALL, s.most, step), __shfl_xor_sync(ALL, s.sum, step)};
        s = join(s, other);
    }
    s.most = __shfl_sync(ALL, s.most, 0);
    s.sum = __shfl_sync(ALL, s.sum, 0);
    __syncthreads();
#endif
    return s;
}

// Largest logit and sum of a span, by the team. What is read goes to `keep` too.
static __device__ __forceinline__ state sum_up(const __nv_bfloat16 *x, span s, int me,
                                               __nv_bfloat16 *keep)
{
    state mine = {-INFINITY, 0};

#if KIND == 0
    for (int i = s.from + me * VEC; i < s.to; i += TEAM * VEC) {
        pack p = load(x, i, s);
        if (CACHE)
            store(keep, i, s, p);
#pragma unroll
        for (int k = 0; k < VEC; k++)
            mine.most = fmaxf(mine.most, __bfloat162float(p.value[k]));
    }
    mine.most = reduce(mine).most;
    if (mine.most == -INFINITY) // the span is empty
        return mine;
    for (int i = s.from + me * VEC; i < s.to; i += TEAM * VEC) {
        pack p = load(CACHE ? keep : x, i, s); // what this thread has kept itself
#pragma unroll
        for (int k = 0; k < VEC; k++)
            mine.sum += power(__bfloat162float(p.value[k]) - mine.most);
    }
#else
    for (int i = s.from + me * VEC; i < s.to; i += TEAM * VEC) {
        pack p = load(x, i, s);
        float most = mine.most;
        if (CACHE)
            store(keep, i, s, p);
#if KIND == 1
#pragma unroll
        for (int k = 0; k < VEC; k++)
            most = fmaxf(most, __bfloat162float(p.value[k]));
        if (most > mine.most) {
            mine.sum *= power(mine.most - most);
            mine.most = most;
        }
#else
        most = 0;
        mine.most = 0;
#endif
#pragma unroll
        for (int k = 0; k < VEC; k++)
            mine.sum += power(__bfloat162float(p.value[k]) - most);
    }
#endif
    return reduce(mine);
}

static __device__ __forceinline__ void write(const __nv_bfloat16 *x, __nv_bfloat16 *dx, span s,
                                             int me, state all, int hit, float grad)
{
    float factor = grad / all.sum;

    for (int i = s.from + me * VEC; i < s.to; i += TEAM * VEC) {
        pack p = load(x, i, s), out;
#pragma unroll
        for (int k = 0; k < VEC; k++) {
            float y = power(__bfloat162float(p.value[k]) - all.most) * factor;
            out.value[k] = __float2bfloat16(i + k == hit ? y - grad : y);
        }
        store(dx, i, s, out);
    }
}

static __device__ __forceinline__ float loss_of(state all, __nv_bfloat16 x)
{
    return all.most + logf(all.sum) - __bfloat162float(x);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    fused(const __nv_bfloat16 *logit, const int *target, const float *upstream, float *loss,
          __nv_bfloat16 *dlogit, int R, int V)
{
    extern __shared__ uint4 row_cache[];
    __nv_bfloat16 *keep = (__nv_bfloat16 *)row_cache;
    int me = (int)threadIdx.x % TEAM;
    long long row = (long long)blockIdx.x * (BLOCK / TEAM) + threadIdx.x / TEAM;
    span s = {0, V, V % VEC == 0};
    state all;
    int hit;

    if (row >= R) // a whole warp
        return;
    hit = target[row] % V;
    all = sum_up(logit + row * V, s, me, keep);
    write(CACHE ? keep : logit + row * V, dlogit + row * V, s, me, all, hit, upstream[row]);
    if (me == 0)
        loss[row] = loss_of(all, logit[row * V + hit]);
}

static __device__ __forceinline__ span span_of(int V)
{
    int length = ((V + SPLIT - 1) / SPLIT + VEC - 1) / VEC * VEC, part = (int)blockIdx.x % SPLIT;
    span s = {min(V, part * length), min(V, (part + 1) * length), V % VEC == 0};
    return s;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    partial(const __nv_bfloat16 *logit, float2 *part, int V)
{
    long long row = blockIdx.x / SPLIT;
    state s = sum_up(logit + row * V, span_of(V), (int)threadIdx.x, 0);

    if (threadIdx.x == 0)
        part[blockIdx.x] = make_float2(s.most, s.sum);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    finish(const __nv_bfloat16 *logit, const int *target, const float *upstream, const float2 *part,
           float *loss, __nv_bfloat16 *dlogit, int V)
{
    long long row = blockIdx.x / SPLIT;
    int hit = target[row] % V;
    state all = {-INFINITY, 0};

    for (int k = 0; k < SPLIT; k++)
        all.most = fmaxf(all.most, part[row * SPLIT + k].x);
    for (int k = 0; k < SPLIT; k++) {
        float2 one = part[row * SPLIT + k];
        all.sum += one.y == 0 ? 0 : one.y * power(one.x - all.most);
    }
    write(logit + row * V, dlogit + row * V, span_of(V), (int)threadIdx.x, all, hit, upstream[row]);
    if (blockIdx.x % SPLIT == 0 && threadIdx.x == 0)
        loss[row] = loss_of(all, logit[row * V + hit]);
}
