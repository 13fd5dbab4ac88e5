//@ tune MAP in (0, 1, 2, 3)
//@ tune BLOCK in (64, 128, 256, 512)
//@ tune VEC in (1, 2, 4, 8)
//@ tune HEADS in (1, 2, 4, 8) if MAP != 1 || HEADS == 1
//@ tune TRIG in (0, 1, 2)
//@ tune FREQUENCY in (0, 1, 2)
//@ tune REST in (0, 1) if HEADS == 8 || REST == 1
// Rotary position embedding; a thread turns VEC neighbouring pairs at once.
// MAP    0 computes sine and cosine where they are needed, 1 once for a token, whose heads a block
//        turns, in shared memory, 2 once for HEADS heads that follow each other in a thread (so do 0
//        and 3 for their loads, but all loads come first), 3 in a kernel before, to a table.
// TRIG   0 sincosf, 1 the fast sine and cosine, 2 sincospif of the angle in half turns.
// FREQUENCY of a pair: 0 powf, 1 exp2f, 2 exp2f rounded to half precision.
// REST   the heads that do not fill a group of HEADS.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
//@ scratch table bytes=8 * T * P
//@ launch fill_table grid=(ceildiv(T * P, 256)) block=(256) args=(position, table, T, P, base) if=(MAP == 3)
//@ launch token grid=(T) block=(BLOCK) args=(x, position, y, H, P, base) smem=(8 * P) if=(MAP == 1)
//@ launch flat grid=(ceildiv(T * ceildiv(H, HEADS) * ceildiv(P, VEC), BLOCK)) block=(BLOCK) args=(x, position, table, y, T, H, P, base) if=(MAP != 1)

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

// .x: cosine, .y: sine of pair i.
static __device__ __forceinline__ float2 turn(int position, int i, int P, float base)
{
    float frequency, sine, cosine;
#if FREQUENCY == 0
    frequency = powf(base, -(float)i / (float)P);
#else
    frequency = exp2f(-(float)i / (float)P * log2f(base));
#endif
#if FREQUENCY == 2
    frequency = __half2float(__float2half(frequency));
#endif
#if TRIG == 0
    sincosf((float)position * frequency, &sine, &cosine);
#elif TRIG == 1
    __sincosf((float)position * frequency, &sine, &cosine);
#else
    sincospif((float)position * (frequency * 0.318309886183790672f), &sine, &cosine);
#endif
    return make_float2(cosine, sine);
}

// `count` pairs, from 1 to VEC; `wide` when they can be read in one word.
static __device__ __forceinline__ pack load(const __nv_bfloat16 *x, int count, bool wide)
{
    pack p;
    if (wide) {
        p.whole = *(const word *)x;
    } else {
#pragma unroll
        for (int k = 0; k < VEC; k++)
            p.value[k] = k < count ? x[k] : __float2bfloat16(0);
    }
    return p;
}

static __device__ __forceinline__ void store(__nv_bfloat16 *y, int count, bool wide, pack p)
{
    if (wide) {
        *(word *)y = p.whole;
    } else {
#pragma unroll
        for (int k = 0; k < VEC; k++) {
            if (k < count)
                y[k] = p.value[k];
        }
    }
}

static __device__ __forceinline__ void rotate(pack a, pack b, const float2 by[VEC], __nv_bfloat16 *y,
                                              int P, int count, bool wide)
{
    pack first, second;
#pragma unroll
    for (int k = 0; k < VEC; k++) {
        float u = __bfloat162float(a.value[k]), v = __bfloat162float(b.value[k]);
        first.value[k] = __float2bfloat16(u * by[k].x - v * by[k].y);
        second.value[k] = __float2bfloat16(v * by[k].x + u * by[k].y);
    }
    store(y, count, wide, first);
    store(y + P, count, wide, second);
}

extern "C" __global__ void fill_table(const int *position, float2 *table, int T, int P, float base)
{
    long long at = blockIdx.x * 256LL + threadIdx.x;

    if (at < (long long)T * P)
        table[at] = turn(position[at / P], (int)(at % P), P, base);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    token(const __nv_bfloat16 *x, const int *position, __nv_bfloat16 *y, int H, int P, float base)
{
    extern __shared__ float2 turns[];
    long long token_base = (long long)blockIdx.x * H * 2 * P;
    int at = position[blockIdx.x], groups = (P + VEC - 1) / VEC;
    bool wide = P % VEC == 0;

    for (int i = (int)threadIdx.x; i < P; i += BLOCK)
        turns[i] = turn(at, i, P, base);
    __syncthreads();
    for (int n = (int)threadIdx.x; n < H * groups; n += BLOCK) {
        int i = n % groups * VEC, count = min(VEC, P - i);
        long long from = token_base + (long long)(n / groups) * 2 * P + i;
        float2 by[VEC];
#pragma unroll
        for (int k = 0; k < VEC; k++)
            by[k] = turns[i + min(k, count - 1)];
        rotate(load(x + from, count, wide), load(x + from + P, count, wide), by, y + from, P, count,
               wide);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    flat(const __nv_bfloat16 *x, const int *position, const float2 *table, __nv_bfloat16 *y, int T,
         int H, int P, float base)
{
    int groups = (P + VEC - 1) / VEC, bundles = (H + HEADS - 1) / HEADS;
    long long n = (long long)blockIdx.x * BLOCK + threadIdx.x;
    long long t = n / groups / bundles;
    int i = (int)(n % groups) * VEC, h = (int)(n / groups % bundles) * HEADS;
    int count = min(VEC, P - i), heads = min(HEADS, H - h);
    bool wide = P % VEC == 0;
    long long from = (t * H + h) * 2 * P + i;
    float2 by[VEC];

    if (t >= T)
        return;
#if !REST
    if (heads < HEADS)
        return;
#endif
#pragma unroll
    for (int k = 0; k < VEC; k++) {
        int pair = i + min(k, count - 1);
        by[k] = MAP == 3 ? table[t * P + pair] : turn(position[t], pair, P, base);
    }
#if MAP == 2
    for (int head = 0; head < heads; head++, from += 2 * P)
        rotate(load(x + from, count, wide), load(x + from + P, count, wide), by, y + from, P, count,
               wide);
#else
    pack a[HEADS], b[HEADS];
#pragma unroll
    for (int head = 0; head < HEADS; head++) {
        if (head < heads) {
            a[head] = load(x + from + (long long)head * 2 * P, count, wide);
            b[head] = load(x + from + (long long)head * 2 * P + P, count, wide);
        }
    }
#pragma unroll
    for (int head = 0; head < HEADS; head++) {
        if (head < heads)
            rotate(a[head], b[head], by, y + from + (long long)head * 2 * P, P, count, wide);
    }
#endif
}
