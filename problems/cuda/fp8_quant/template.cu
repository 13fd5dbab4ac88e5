//@ tune LANES in (4, 8, 16, 32)
//@ tune THREADS in (64, 128, 256, 512)
//@ tune VEC in (1, 2, 4, 8) if LANES * VEC <= 128
//@ tune ITEMS in (1, 2, 4)
//@ tune DIVIDE in (0, 1, 2)
//@ tune REDUCE in (0, 1)
//@ tune HINT in (0, 1)
//@ tune SIGN in (0, 1)
// LANES threads work on a group of 128 elements, a block on THREADS / LANES * ITEMS groups.
// VEC    elements of one load; where rows are not aligned to it, elements come one by one.
// ITEMS  groups of a thread, one after the other, whose loads are issued before the first is used.
// DIVIDE how elements are scaled: 0 by the reciprocal 448 / most, 1 by division, 2 by a fast
//        reciprocal.
// REDUCE the largest of a group: 0 by exchange between lanes, 1 by way of shared memory.
// HINT   1 tells the caches that nothing is used twice.
// SIGN   of elements when the largest is looked for: 0 dropped, 1 kept.
//@ launch fp8_quant grid=(ceildiv(R*ceildiv(N, 128), THREADS/LANES*ITEMS)) block=(THREADS) args=(x, q, scale, R, N, eps)
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#define PARTS (128 / (LANES * VEC)) // vectors of a thread in a group
#define GROUPS (THREADS / LANES)    // of a block at a time

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef unsigned short in; typedef unsigned char out; };
template <> struct vector_of<2> { typedef unsigned in; typedef unsigned short out; };
template <> struct vector_of<4> { typedef uint2 in; typedef unsigned out; };
template <> struct vector_of<8> { typedef uint4 in; typedef uint2 out; };

typedef vector_of<VEC>::in vector;
typedef vector_of<VEC>::out bytes;

union raw {
    vector whole;
    unsigned short part[VEC];
};
union packed {
    bytes whole;
    unsigned char part[VEC];
};

struct group {
    raw part[PARTS];
};

static __device__ __forceinline__ float value_of(unsigned short bits)
{
    return __bfloat162float(__ushort_as_bfloat16(bits));
}

static __device__ __forceinline__ group load(const unsigned short *row, int first, int lane, int N)
{
    group g;

#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        int at = first + (p * LANES + lane) * VEC;
#pragma unroll
        for (int e = 0; e < VEC; e++)
            g.part[p].part[e] = 0;
        if (N % VEC == 0) {
            const vector *from = (const vector *)(row + at);
            if (at < N)
                g.part[p].whole = HINT ? __ldcs(from) : *from;
        } else {
#pragma unroll
            for (int e = 0; e < VEC; e++)
                if (at + e < N)
                    g.part[p].part[e] = row[at + e];
        }
    }
    return g;
}

static __device__ __forceinline__ void store(unsigned char *row, int first, int lane, int N,
                                             const group &g, float factor, float inverse)
{
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        int at = first + (p * LANES + lane) * VEC;
        packed out;
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            float value = value_of(g.part[p].part[e]);
            value = DIVIDE == 1 ? value / factor : value * inverse;
            out.part[e] = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
        }
        if (N % VEC == 0) {
            if (at < N) {
                if (HINT)
                    __stcs((bytes *)(row + at), out.whole);
                else
                    *(bytes *)(row + at) = out.whole;
            }
        } else {
#pragma unroll
            for (int e = 0; e < VEC; e++)
                if (at + e < N)
                    row[at + e] = out.part[e];
        }
    }
}

static __device__ __forceinline__ float largest_of(const group &g)
{
    float most = 0;

#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            float value = value_of(g.part[p].part[e]);
            most = fmaxf(most, SIGN ? value : fabsf(value));
        }
#if REDUCE == 0
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
#else
    __shared__ float part[THREADS];
    int first = threadIdx.x / LANES * LANES;
    part[threadIdx.x] = most;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < LANES; i++)
        most = fmaxf(most, part[first + i]);
    __syncwarp();
#endif
    return most;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fp8_quant(const unsigned short *__restrict__ x, unsigned char *__restrict__ q,
              float *__restrict__ scale, int R, int N, float eps)
{
    int groups = (N + 127) / 128, lane = threadIdx.x % LANES;
    long long total = (long long)R * groups;
    long long begin = (long long)blockIdx.x * GROUPS * ITEMS + threadIdx.x / LANES;
    group g[ITEMS];

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        long long at = begin + i * GROUPS;
        long long row = at / groups;
        if (at < total)
            g[i] = load(x + row * N, (int)(at - row * groups) * 128, lane, N);
        else
            g[i] = load(x, N, lane, N); // nothing
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        long long at = begin + i * GROUPS;
        long long row = at / groups;
        float most = fmaxf(largest_of(g[i]), eps);
        float factor = most / 448.0f;
        float inverse = DIVIDE == 2 ? __fdividef(448.0f, most) : 448.0f / most;

        if (at < total) {
            store(q + row * N, (int)(at - row * groups) * 128, lane, N, g[i], factor, inverse);
            if (lane == 0)
                scale[at] = factor;
        }
    }
}
