//@ tune BM in (32, 64, 128)
//@ tune BN in (32, 64, 128)
//@ tune BK in (8, 16, 32)
//@ tune TM in (2, 4, 8, 16)
//@ tune TN in (2, 4, 8) if BM * BN / (TM * TN) >= 64 && BM * BN / (TM * TN) <= 1024
//@ tune STAGES in (1, 2, 3, 4)
//@ tune VEC in (1, 4)
//@ tune SPREAD in (0, 1)
//@ tune SPLITK in (1, 2, 4, 8)
//@ tune TAIL in (0, 1) if SPLITK > 1 || TAIL == 1
//@ tune MATH in (0, 1) if MATH == 0 || SPREAD == 0 && TM * TN >= 8
// C = A B by tiles of BM x BN, TM x TN sums for each thread, BK of the inner dimension at once.
// STAGES tiles in shared memory; 1 copies by ordinary loads, more by asynchronous ones.
// VEC    floats of B per copy.
// SPREAD 0: a thread's sums are neighbours; 1: they are spread over the tile.
// SPLITK parts of the inner dimension by different blocks, added by a second kernel.
// TAIL   1 rounds the length of a part up, 0 down.
// MATH   0 by multiply-add in single precision, 1 by tensor cores in TF32.
//@ scratch part bytes=4 * max(1, M * N * min(SPLITK - 1, 1) * SPLITK)
//@ launch sgemm grid=(ceildiv(N, BN), ceildiv(M, BM), SPLITK) block=(BM * BN / (TM * TN)) smem=4 * max(STAGES * BK * (BM + 4 + BN), 8 * (BM * BN / (TM * TN))) args=(A, B, C, part, M, N, K)
//@ launch add_parts grid=(ceildiv(M * N, 256)) block=(256) args=(part, C, M * N) if=(SPLITK > 1)
#include <mma.h>

#define THREADS (BM * BN / (TM * TN))
#define LDA (BM + 4)
#define STAGE (BK * (LDA + BN))

// Copies COUNT floats into shared memory, zeros where they are not inside of the matrix.
template <int COUNT>
static __device__ __forceinline__ void copy(float *to, const float *from, bool inside)
{
#if STAGES == 1
    if (COUNT == 4)
        *(float4 *)to = inside ? *(const float4 *)from : make_float4(0, 0, 0, 0);
    else
        *to = inside ? *from : 0;
#else
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? 4 * COUNT : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from),
                 "n"(4 * COUNT), "r"(bytes)
                 : "memory");
#endif
}

// The tile of A (transposed) and the one of B that begin at k0; nothing from `end` on.
static __device__ __forceinline__ void load(float *stage, const float *A, const float *B, int row0,
                                            int col0, int k0, int end, int M, int N, int K)
{
    float *a = stage, *b = stage + BK * LDA;

#pragma unroll 4
    for (int e = (int)threadIdx.x; e < BM * BK; e += THREADS) {
        int m = e / BK, k = e % BK;
        bool inside = row0 + m < M && k0 + k < end;
        copy<1>(&a[k * LDA + m], inside ? A + (long long)(row0 + m) * K + k0 + k : A, inside);
    }
    if (VEC == 4 && N % 4 == 0) {
        for (int e = (int)threadIdx.x; e < BN / 4 * BK; e += THREADS) {
            int k = e / (BN / 4), n = e % (BN / 4) * 4;
            bool inside = col0 + n < N && k0 + k < end;
            copy<4>(&b[k * BN + n], inside ? B + (long long)(k0 + k) * N + col0 + n : B, inside);
        }
        return;
    }
#pragma unroll 4
    for (int e = (int)threadIdx.x; e < BN * BK; e += THREADS) {
        int k = e / BN, n = e % BN;
        bool inside = col0 + n < N && k0 + k < end;
        copy<1>(&b[k * BN + n], inside ? B + (long long)(k0 + k) * N + col0 + n : B, inside);
    }
}

#if MATH == 0
struct sums {
    float at[TM][TN];

    static __device__ __forceinline__ int row(int i)
    {
        int ty = (int)threadIdx.x / (BN / TN);
        return SPREAD ? i * (BM / TM) + ty : ty * TM + i;
    }
    static __device__ __forceinline__ int col(int j)
    {
        int tx = (int)threadIdx.x % (BN / TN);
        return SPREAD ? j * (BN / TN) + tx : tx * TN + j;
    }
    __device__ __forceinline__ void clear()
    {
        for (int i = 0; i < TM; i++)
            for (int j = 0; j < TN; j++)
                at[i][j] = 0;
    }
    __device__ __forceinline__ void add(const float *stage)
    {
        const float *a = stage, *b = stage + BK * LDA;

#pragma unroll
        for (int k = 0; k < BK; k++) {
            float left[TM], right[TN];
#pragma unroll
            for (int i = 0; i < TM; i++)
                left[i] = a[k * LDA + row(i)];
#pragma unroll
            for (int j = 0; j < TN; j++)
                right[j] = b[k * BN + col(j)];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    at[i][j] += left[i] * right[j];
        }
    }
    __device__ __forceinline__ void store(float *C, float *, int row0, int col0, int M, int N)
    {
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++)
                if (row0 + row(i) < M && col0 + col(j) < N)
                    C[(long long)(row0 + row(i)) * N + col0 + col(j)] = at[i][j];
    }
};
#else
using namespace nvcuda;

// Every warp has TM * TN / 8 fragments of 16 x 16.
#define PER_WARP (TM * TN / 8)

struct sums {
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> at[PER_WARP];

    static __device__ __forceinline__ int row(int f)
    {
        return ((int)threadIdx.x / 32 * PER_WARP + f) / (BN / 16) * 16;
    }
    static __device__ __forceinline__ int col(int f)
    {
        return ((int)threadIdx.x / 32 * PER_WARP + f) % (BN / 16) * 16;
    }
    __device__ __forceinline__ void clear()
    {
        for (int f = 0; f < PER_WARP; f++)
            wmma::fill_fragment(at[f], 0.0f);
    }
    __device__ __forceinline__ void add(const float *stage)
    {
        const float *a = stage, *b = stage + BK * LDA;

#pragma unroll
        for (int k = 0; k < BK; k += 8)
#pragma unroll
            for (int f = 0; f < PER_WARP; f++) {
                wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::col_major> l;
                wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> r;
                wmma::load_matrix_sync(l, a + k * LDA + row(f), LDA);
                wmma::load_matrix_sync(r, b + k * BN + col(f), BN);
                for (int e = 0; e < l.num_elements; e++)
                    l.x[e] = wmma::__float_to_tf32(l.x[e]);
                for (int e = 0; e < r.num_elements; e++)
                    r.x[e] = wmma::__float_to_tf32(r.x[e]);
                wmma::mma_sync(at[f], l, r, at[f]);
            }
    }
    __device__ __forceinline__ void store(float *C, float *memory, int row0, int col0, int M, int N)
    {
        float *own = memory + threadIdx.x / 32 * 256;

        __syncthreads(); // the tiles have been read
#pragma unroll
        for (int f = 0; f < PER_WARP; f++) {
            wmma::store_matrix_sync(own, at[f], 16, wmma::mem_row_major);
            __syncwarp();
            for (int e = (int)threadIdx.x % 32; e < 256; e += 32) {
                int r = row0 + row(f) + e / 16, c = col0 + col(f) + e % 16;
                if (r < M && c < N)
                    C[(long long)r * N + c] = own[e];
            }
            __syncwarp();
        }
    }
};
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    sgemm(const float *A, const float *B, float *C, float *part, int M, int N, int K)
{
    extern __shared__ __align__(128) float memory[];
    int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
    int length = TAIL ? (K + SPLITK - 1) / SPLITK : K / SPLITK;
    int from = blockIdx.z * length, end = min(K, from + length);
    int tiles = end > from ? (end - from + BK - 1) / BK : 0;
    float *out = SPLITK > 1 ? part + (long long)blockIdx.z * M * N : C;
    sums sum;

    sum.clear();
#if STAGES == 1
    for (int t = 0; t < tiles; t++) {
        load(memory, A, B, row0, col0, from + t * BK, end, M, N, K);
        __syncthreads();
        sum.add(memory);
        __syncthreads();
    }
#else
    for (int t = 0; t < STAGES - 1; t++) {
        if (t < tiles)
            load(memory + t * STAGE, A, B, row0, col0, from + t * BK, end, M, N, K);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int t = 0; t < tiles; t++) {
        int next = t + STAGES - 1;
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); // tile t is there for all, and nobody reads tile t - 1 any more
        if (next < tiles)
            load(memory + next % STAGES * STAGE, A, B, row0, col0, from + next * BK, end, M, N, K);
        asm volatile("cp.async.commit_group;" ::: "memory");
        sum.add(memory + t % STAGES * STAGE);
    }
#endif
    sum.store(out, memory, row0, col0, M, N);
}

extern "C" __global__ void add_parts(const float *part, float *C, int count)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;

    if (i >= count)
        return;
    for (int p = 0; p < SPLITK; p++)
        sum += part[(long long)p * count + i];
    C[i] = sum;
}
