//@ tune LANES in (8, 16, 32, 64, 128, 256)
//@ tune GROUPS in (1, 2, 4, 8, 16) if LANES * GROUPS >= 64 && LANES * GROUPS <= 512
//@ tune ROWS in (1, 2, 4)
//@ tune VEC in (1, 2, 4, 8)
//@ tune UNROLL in (1, 2, 4)
//@ tune SPLIT in (1, 2, 4, 8)
//@ tune ADD in (0, 1) if SPLIT > 1 || ADD == 0
//@ tune PLACE in (0, 1, 2)
// y = A x; LANES threads work on ROWS rows together, a block on GROUPS times as many.
// VEC    elements of one load.
// UNROLL how far the loop over a row is unrolled.
// SPLIT  parts of a row, done by different blocks; ADD 0 adds them up in a second launch, 1 by
//        atomic additions.
// PLACE  of x: 0 in memory, 1 in shared memory as floats, 2 the same with room for 8192.
#define ROOM 8192
//@ scratch part bytes=(4*M*SPLIT)
//@ launch clear grid=(ceildiv(M, 256)) block=(256) args=(y, M) if=(ADD == 1)
//@ launch gemv grid=(ceildiv(M, GROUPS*ROWS), SPLIT) block=(LANES, GROUPS) args=(A, x, part, y, M, K) if=(PLACE != 1)
//@ launch gemv grid=(ceildiv(M, GROUPS*ROWS), SPLIT) block=(LANES, GROUPS) args=(A, x, part, y, M, K) smem=(32*ceildiv(ceildiv(K, SPLIT), 8)) if=(PLACE == 1)
//@ launch add_parts grid=(ceildiv(M, 256)) block=(256) args=(part, y, M) if=(SPLIT > 1 && ADD == 0)
#include <cuda_bf16.h>

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

struct __align__(VEC < 4 ? 4 * VEC : 16) pack {
    float value[VEC];
};

// Elements at, at + 1 and so on of a row of K, 0 from `end` on.
static __device__ __forceinline__ pack load(const __nv_bfloat16 *row, int at, int end, int K)
{
    raw r;
    pack p;

#pragma unroll
    for (int e = 0; e < VEC; e++)
        r.part[e] = 0;
    if (K % VEC == 0) {
        if (at < end)
            r.whole = *(const vector *)(row + at);
    } else {
#pragma unroll
        for (int e = 0; e < VEC; e++) {
            if (at + e < end)
                r.part[e] = __bfloat16_as_ushort(row[at + e]);
        }
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.value[e] = __bfloat162float(__ushort_as_bfloat16(r.part[e]));
    return p;
}

extern "C" __global__ void clear(float *y, int M)
{
    int row = (int)blockIdx.x * 256 + (int)threadIdx.x;

    if (row < M)
        y[row] = 0;
}

extern "C" __global__ void add_parts(const float *part, float *y, int M)
{
    int row = (int)blockIdx.x * 256 + (int)threadIdx.x;
    float sum = 0;

    if (row >= M)
        return;
#pragma unroll
    for (int i = 0; i < SPLIT; i++)
        sum += part[(long long)i * M + row];
    y[row] = sum;
}

// sum[r] over the LANES threads of a group; all threads of the block take part.
static __device__ __forceinline__ void reduce(float sum[ROWS])
{
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int step = (LANES < 32 ? LANES : 32) / 2; step > 0; step /= 2)
            sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], step);
    }
    if (LANES > 32) {
        __shared__ float part[GROUPS][(LANES + 31) / 32][ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (threadIdx.x % 32 == 0)
                part[threadIdx.y][threadIdx.x / 32][r] = sum[r];
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            sum[r] = 0;
            for (int i = 0; i < LANES / 32; i++)
                sum[r] += part[threadIdx.y][i][r];
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES *GROUPS)
    gemv(const __nv_bfloat16 *A, const __nv_bfloat16 *x, float *part, float *y, int M, int K)
{
    extern __shared__ float4 memory[];
#if PLACE == 2
    __shared__ float4 room[ROOM / 4];
    float *kept = (float *)room;
#else
    float *kept = (float *)memory;
#endif
    // Parts are whole vectors, so that they begin at aligned addresses if rows do.
    int length = ((K + SPLIT - 1) / SPLIT + 7) / 8 * 8;
    int begin = (int)blockIdx.y * length, end = min(K, begin + length);
    int row = ((int)blockIdx.x * GROUPS + (int)threadIdx.y) * ROWS;
    float sum[ROWS];

    if (PLACE > 0) {
        int me = (int)threadIdx.y * LANES + (int)threadIdx.x;
        for (int i = me; i < length && (PLACE == 1 || i < ROOM); i += LANES * GROUPS)
            kept[i] = begin + i < end ? __bfloat162float(x[begin + i]) : 0;
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        sum[r] = 0;
#pragma unroll UNROLL
    for (int at = begin + (int)threadIdx.x * VEC; at < end; at += LANES * VEC) {
        pack p;
        if (PLACE == 0)
            p = load(x, at, end, K);
        else if (PLACE == 2 && at - begin + VEC > ROOM)
            continue;
        else
            p = *(const pack *)(kept + at - begin);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            if (row + r < M) {
                pack a = load(A + (long long)(row + r) * K, at, end, K);
#pragma unroll
                for (int e = 0; e < VEC; e++)
                    sum[r] = fmaf(a.value[e], p.value[e], sum[r]);
            }
        }
    }
    reduce(sum);
    if (threadIdx.x > 0)
        return;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (row + r >= M)
            continue;
        if (SPLIT == 1)
            y[row + r] = sum[r];
        else if (ADD == 1)
            atomicAdd(y + row + r, sum[r]);
        else
            part[(long long)blockIdx.y * M + row + r] = sum[r];
    }
}
