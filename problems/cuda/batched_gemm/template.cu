//@ tune TX in (4, 8, 16)
//@ tune TY in (4, 8, 16)
//@ tune TM in (1, 2, 4, 8)
//@ tune TN in (1, 2, 4, 8)
//@ tune MATS in (1, 2, 4, 8, 16) if TX * TY * MATS >= 32 && TX * TY * MATS <= 1024
//@ tune WHERE in (0, 1)
//@ tune BK in (4, 8, 16, 32, 64) if WHERE == 1 || BK == 4
//@ tune SYNC in (0, 1) if SYNC == 0 || WHERE == 1 && TX * TY <= 32
//@ tune STORE in (0, 1) if STORE == 0 || WHERE == 1
//@ tune TAIL in (0, 1)
//@ tune SPECIAL in (0, 1)
// Many small products: a block works on MATS matrices, with TX x TY threads for each of them, and a
// thread has TM x TN sums that are TY rows and TX columns apart.
// WHERE   the factors are read from: 0 global memory, 1 tiles of depth BK in shared memory.
// SYNC    0 waits for the whole block, 1 only for the warp, which is enough where a matrix has no more
//         threads than a warp.
// STORE   shared memory holds floats (0) or halves (1).
// TAIL    1 goes to the end of the inner dimension, 0 only through whole tiles.
// SPECIAL 1 compiles the sizes into the kernel.
//@ specialize M, N, K
//@ launch batched_gemm grid=(ceildiv(B, MATS), ceildiv(M, TY * TM) * ceildiv(N, TX * TN)) block=(TX, TY, MATS) smem=WHERE * MATS * BK * (TY * TM + TX * TN) * (4 - 2 * STORE) args=(a, b, c, B, M, N, K)
#include <cuda_fp16.h>

#define BM (TY * TM)
#define BN (TX * TN)
#if STORE == 1
typedef __half cell;
#else
typedef float cell;
#endif

static __device__ __forceinline__ void wait()
{
    if (SYNC == 1)
        __syncwarp();
    else
        __syncthreads();
}

extern "C" __global__ void __launch_bounds__(TX * TY * MATS)
    batched_gemm(const float *__restrict__ a, const float *__restrict__ b, float *c, int B,
                 int size_m, int size_n, int size_k)
{
#if SPECIAL
    constexpr int M = KCAST_M, N = KCAST_N, K = KCAST_K;
#else
    int M = size_m, N = size_n, K = size_k;
#endif
    int tx = threadIdx.x, ty = threadIdx.y, thread = ty * TX + tx, across = (N + BN - 1) / BN;
    int row0 = blockIdx.y / across * BM, col0 = blockIdx.y % across * BN;
    long long matrix = (long long)blockIdx.x * MATS + threadIdx.z;
    bool exists = matrix < B; // the threads of others stay, because the block waits for them
    int depth = TAIL ? K : K / BK * BK;
    float sum[TM][TN];

    if (!exists)
        matrix = 0;
    a += matrix * M * K;
    b += matrix * K * N;
    c += matrix * M * N;
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++)
            sum[i][j] = 0;
#if WHERE == 0
#pragma unroll 4
    for (int k = 0; k < depth; k++) {
        float left[TM], right[TN];
#pragma unroll
        for (int i = 0; i < TM; i++)
            left[i] = row0 + ty + TY * i < M ? a[(row0 + ty + TY * i) * K + k] : 0;
#pragma unroll
        for (int j = 0; j < TN; j++)
            right[j] = col0 + tx + TX * j < N ? b[k * N + col0 + tx + TX * j] : 0;
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++)
                sum[i][j] += left[i] * right[j];
    }
#else
    extern __shared__ __align__(16) unsigned char memory[];
    cell *lefts = (cell *)memory + threadIdx.z * (BK * (BM + BN)); // BK columns of BM
    cell *rights = lefts + BK * BM;                                    // BK rows of BN

    for (int k0 = 0; k0 < depth; k0 += BK) {
        for (int e = thread; e < BM * BK; e += TX * TY) {
            int m = row0 + e / BK, k = k0 + e % BK;
            lefts[e % BK * BM + e / BK] = m < M && k < depth ? a[m * K + k] : 0.0f;
        }
        for (int e = thread; e < BN * BK; e += TX * TY) {
            int k = k0 + e / BN, n = col0 + e % BN;
            rights[e] = n < N && k < depth ? b[k * N + n] : 0.0f;
        }
        wait();
#pragma unroll 8
        for (int k = 0; k < BK; k++) {
            float left[TM], right[TN];
#pragma unroll
            for (int i = 0; i < TM; i++)
                left[i] = lefts[k * BM + ty + TY * i];
#pragma unroll
            for (int j = 0; j < TN; j++)
                right[j] = rights[k * BN + tx + TX * j];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++)
                    sum[i][j] += left[i] * right[j];
        }
        wait();
    }
#endif
#pragma unroll
    for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) {
            int row = row0 + ty + TY * i, col = col0 + tx + TX * j;
            if (exists && row < M && col < N)
                c[row * N + col] = sum[i][j];
        }
}
