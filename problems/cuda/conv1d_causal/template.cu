//@ tune THREADS in (32, 64, 128, 256, 512)
//@ tune ROWS in (1, 2, 4, 8) if THREADS * ROWS <= 1024
//@ tune VEC in (1, 2, 4, 8)
//@ tune PER in (1, 2, 4, 8)
//@ tune HISTORY in (0, 1, 2, 3) if (HISTORY != 1 || VEC >= 4) && (HISTORY != 3 || PER > 1)
//@ tune EDGE in (0, 1) if HISTORY == 1 || EDGE == 1
//@ tune EXP in (0, 1, 2)
//@ tune MATH in (0, 1)
//@ tune STREAM in (0, 1)
// Causal convolution with four taps: a block has ROWS rows, THREADS threads for each of them, and a
// thread PER vectors of VEC points in time.
// HISTORY the three points before a vector come from: 0 global memory, 1 the lane beside (EDGE: the
//         first lane reads them), 2 shared memory, 3 the vector before, as a thread's are neighbours.
// EXP     0 expf, 1 __expf, 2 the approximate hyperbolic tangent.
// MATH    0 sums in single precision, 1 in bfloat16.
// STREAM  stores past the caches.
//@ launch conv1d_causal grid=(ceildiv(B * D, ROWS), ceildiv(T, THREADS * VEC * PER)) block=(THREADS, ROWS) args=(x, w, bias, y, B * D, D, T)
#include <cuda_bf16.h>

#define CHUNK (THREADS * VEC * PER)

typedef __nv_bfloat16 bf16;

struct __align__(2 * VEC) pack {
    bf16 at[VEC];
};

static __device__ __forceinline__ float element(const bf16 *row, int t, int T)
{
    return t >= 0 && t < T ? __bfloat162float(row[t]) : 0;
}

// VEC points from t on, zeros from T on.
static __device__ __forceinline__ void read(float *to, const bf16 *row, int t, int T)
{
    if (VEC > 1 && T % VEC == 0 && t < T) {
        pack p = *(const pack *)(row + t);
#pragma unroll
        for (int e = 0; e < VEC; e++)
            to[e] = __bfloat162float(p.at[e]);
        return;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        to[e] = element(row, t + e, T);
}

static __device__ __forceinline__ float silu(float z)
{
#if EXP == 0
    return z / (1 + expf(-z));
#elif EXP == 1
    return __fdividef(z, 1 + __expf(-fmaxf(z, -80.0f)));
#else
    float half = 0.5f * z, tangent;
    asm("tanh.approx.f32 %0, %1;" : "=f"(tangent) : "f"(half));
    return half + half * tangent;
#endif
}

static __device__ __forceinline__ void put(bf16 *row, int t, bf16 value)
{
#if STREAM
    __stcs((unsigned short *)(row + t), __bfloat16_as_ushort(value));
#else
    row[t] = value;
#endif
}

static __device__ __forceinline__ void write(bf16 *row, int t, int T, pack p)
{
    if (VEC > 1 && T % VEC == 0 && t < T) {
#if STREAM && VEC == 8
        __stcs((uint4 *)(row + t), *(uint4 *)&p);
#elif STREAM && VEC == 4
        __stcs((uint2 *)(row + t), *(uint2 *)&p);
#elif STREAM && VEC == 2
        __stcs((unsigned *)(row + t), *(unsigned *)&p);
#else
        *(pack *)(row + t) = p;
#endif
        return;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        if (t + e < T)
            put(row, t + e, p.at[e]);
}

extern "C" __global__ void __launch_bounds__(THREADS *ROWS)
    conv1d_causal(const bf16 *__restrict__ x, const float *__restrict__ w,
                  const float *__restrict__ bias, bf16 *y, int rows, int D, int T)
{
    int row = blockIdx.x * ROWS + threadIdx.y, t0 = blockIdx.y * CHUNK;
    bool exists = row < rows; // the threads of others stay for shuffles and barriers
    int channel = exists ? row % D : 0;
    const bf16 *from = x + (long long)(exists ? row : 0) * T;
    bf16 *to = y + (long long)(exists ? row : 0) * T;
    float weight[4], offset = bias[channel], point[VEC + 3] = {}; // point[3] is the first output's
#if HISTORY == 2
    __shared__ bf16 memory[ROWS][CHUNK + 3];
    bf16 *chunk = memory[threadIdx.y];

    for (int i = threadIdx.x; i < CHUNK + 3; i += THREADS)
        chunk[i] = __float2bfloat16(element(from, t0 + i - 3, T));
    __syncthreads();
#endif

#pragma unroll
    for (int q = 0; q < 4; q++)
        weight[q] = w[channel * 4 + q];
#pragma unroll
    for (int k = 0; k < PER; k++) {
        int local = (HISTORY == 3 ? (int)threadIdx.x * PER + k : k * THREADS + (int)threadIdx.x);
        int t = t0 + local * VEC;
        pack p;
#if HISTORY == 2
#pragma unroll
        for (int e = 0; e < VEC + 3; e++)
            point[e] = __bfloat162float(chunk[local * VEC + e]);
#else
#if HISTORY == 3
        if (k > 0) {
#pragma unroll
            for (int e = 0; e < 3; e++)
                point[e] = point[VEC + e];
        }
#endif
        read(point + 3, from, t, T);
#if HISTORY == 1
#pragma unroll
        for (int e = 0; e < 3; e++)
            point[e] = __shfl_up_sync(0xffffffffu, point[VEC + e], 1);
#endif
        if (HISTORY == 0 || (HISTORY == 3 && k == 0) || (HISTORY == 1 && threadIdx.x % 32 == 0)) {
#pragma unroll
            for (int e = 0; e < 3; e++)
                point[e] = EDGE ? element(from, t + e - 3, T) : 0;
        }
#endif
#pragma unroll
        for (int e = 0; e < VEC; e++) {
#if MATH == 0
            float sum = offset;
#pragma unroll
            for (int q = 0; q < 4; q++)
                sum += weight[q] * point[e + q];
#else
            bf16 total = __float2bfloat16(offset);
#pragma unroll
            for (int q = 0; q < 4; q++)
                total = __hfma(__float2bfloat16(weight[q]), __float2bfloat16(point[e + q]), total);
            float sum = __bfloat162float(total);
#endif
            p.at[e] = __float2bfloat16(silu(sum));
        }
        if (exists)
            write(to, t, T, p);
    }
}
