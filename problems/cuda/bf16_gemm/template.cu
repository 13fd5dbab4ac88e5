//@ tune BM in (32, 64, 128, 256)
//@ tune BN in (32, 64, 128, 256)
//@ tune BK in (16, 32, 64)
//@ tune WM in (1, 2, 4) if BM >= 16 * WM
//@ tune WN in (1, 2, 4) if BN >= 16 * WN && WM * WN >= 2 && BM * BN <= 16384 * 2 && BM * BN / (WM * WN) <= 8192
//@ tune STAGES in (1, 2, 3, 4)
//@ tune PAD in (0, 8)
//@ tune SPLITK in (1, 2, 4, 8)
//@ tune PART in (0, 1) if SPLITK > 1 || PART == 0
//@ tune TAIL in (0, 1) if SPLITK > 1 || TAIL == 1
//@ tune ORDER in (0, 1)
// C = A B on tensor cores: tiles of BM x BN by WM x WN warps, BK of the inner dimension at once.
// STAGES tiles in shared memory; more than one are filled by asynchronous copies of 16 bytes where
//        the rows are aligned.
// PAD    elements beside each row of a tile, against bank conflicts.
// SPLITK parts of the inner dimension by different blocks, added by a second kernel; kept as float
//        (PART 0) or bfloat16 (1); their length rounded up (TAIL 1) or down (0).
// ORDER  0: neighbouring blocks are beside each other, 1: below each other.
//@ scratch part bytes=max(4, min(SPLITK - 1, 1) * SPLITK * (4 - 2 * PART) * M * N)
//@ launch bf16_gemm grid=(ceildiv(N, BN) * ceildiv(M, BM), 1, SPLITK) block=(32 * WM * WN) smem=max(2 * STAGES * (BM * (BK + PAD) + BK * (BN + PAD)), 1024 * WM * WN) args=(A, B, C, part, M, N, K)
//@ launch add_parts grid=(ceildiv(M * N, 256)) block=(256) args=(part, C, M * N) if=(SPLITK > 1)
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

#define THREADS (32 * WM * WN)
#define PITCH_A (BK + PAD)
#define PITCH_B (BN + PAD)
#define STAGE (BM * PITCH_A + BK * PITCH_B)
#define FM (BM / WM / 16)
#define FN (BN / WN / 16)

typedef __nv_bfloat16 bf16;
#if PART == 1
typedef bf16 part_t;
#else
typedef float part_t;
#endif

// Eight elements into shared memory, zeros if they are outside.
static __device__ __forceinline__ void copy8(bf16 *to, const bf16 *from, bool inside)
{
#if STAGES == 1
    *(uint4 *)to = inside ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
#else
    unsigned at = (unsigned)__cvta_generic_to_shared(to);
    int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes)
                 : "memory");
#endif
}

// A tile of ROWS x COLS whose corner is (row0, col0) of a matrix with `pitch` elements per row; zeros
// from row `rows` and column `cols` on. Whole vectors where the matrix is aligned and a limit does
// not fall into one.
template <int ROWS, int COLS>
static __device__ __forceinline__ void load(bf16 *tile, int tile_pitch, const bf16 *matrix, int row0,
                                            int col0, int rows, int cols, int pitch)
{
    if (pitch % 8 == 0 && col0 % 8 == 0 && cols % 8 == 0) {
        for (int e = (int)threadIdx.x; e < ROWS * COLS / 8; e += THREADS) {
            int r = e / (COLS / 8), c = e % (COLS / 8) * 8;
            bool inside = row0 + r < rows && col0 + c < cols;
            const bf16 *from = matrix + (long long)(row0 + r) * pitch + col0 + c;
            copy8(tile + r * tile_pitch + c, inside ? from : matrix, inside);
        }
        return;
    }
#pragma unroll 4
    for (int e = (int)threadIdx.x; e < ROWS * COLS; e += THREADS) {
        int r = e / COLS, c = e % COLS;
        bool inside = row0 + r < rows && col0 + c < cols;
        tile[r * tile_pitch + c] = inside ? matrix[(long long)(row0 + r) * pitch + col0 + c]
                                          : __float2bfloat16(0.0f);
    }
}

static __device__ __forceinline__ void load_both(bf16 *stage, const bf16 *A, const bf16 *B, int row0,
                                                 int col0, int k0, int end, int M, int N, int K)
{
    load<BM, BK>(stage, PITCH_A, A, row0, k0, M, end, K);
    load<BK, BN>(stage + BM * PITCH_A, PITCH_B, B, k0, col0, end, N, N);
}

typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[FM][FN];

static __device__ __forceinline__ void multiply(sums &sum, const bf16 *stage, int row, int col)
{
    const bf16 *a = stage + row * PITCH_A, *b = stage + BM * PITCH_A + col;

#pragma unroll
    for (int k = 0; k < BK; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, bf16, wmma::row_major> left[FM];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, wmma::row_major> right[FN];
#pragma unroll
        for (int i = 0; i < FM; i++)
            wmma::load_matrix_sync(left[i], a + 16 * i * PITCH_A + k, PITCH_A);
#pragma unroll
        for (int j = 0; j < FN; j++)
            wmma::load_matrix_sync(right[j], b + k * PITCH_B + 16 * j, PITCH_B);
#pragma unroll
        for (int i = 0; i < FM; i++)
#pragma unroll
            for (int j = 0; j < FN; j++)
                wmma::mma_sync(sum[i][j], left[i], right[j], sum[i][j]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bf16_gemm(const bf16 *A, const bf16 *B, bf16 *C, part_t *part, int M, int N, int K)
{
    extern __shared__ __align__(128) unsigned char memory[];
    bf16 *stage = (bf16 *)memory;
    int across = (N + BN - 1) / BN, down = (M + BM - 1) / BM, block = blockIdx.x;
    int row0 = (ORDER ? block % down : block / across) * BM;
    int col0 = (ORDER ? block / down : block % across) * BN;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int row = warp / WN * (BM / WM), col = warp % WN * (BN / WN);
    int length = TAIL ? (K + SPLITK - 1) / SPLITK : K / SPLITK;
    int from = blockIdx.z * length, end = min(K, from + length);
    int tiles = end > from ? (end - from + BK - 1) / BK : 0;
    float *own = (float *)memory + warp * 256;
    sums sum;

#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
        for (int j = 0; j < FN; j++)
            wmma::fill_fragment(sum[i][j], 0.0f);
#if STAGES == 1
    for (int t = 0; t < tiles; t++) {
        load_both(stage, A, B, row0, col0, from + t * BK, end, M, N, K);
        __syncthreads();
        multiply(sum, stage, row, col);
        __syncthreads();
    }
#else
    for (int t = 0; t < STAGES - 1; t++) {
        if (t < tiles)
            load_both(stage + t * STAGE, A, B, row0, col0, from + t * BK, end, M, N, K);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int t = 0; t < tiles; t++) {
        int next = t + STAGES - 1;
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
        __syncthreads(); // tile t is there for all, and nobody reads tile t - 1 any more
        if (next < tiles)
            load_both(stage + next % STAGES * STAGE, A, B, row0, col0, from + next * BK, end, M, N,
                      K);
        asm volatile("cp.async.commit_group;" ::: "memory");
        multiply(sum, stage + t % STAGES * STAGE, row, col);
    }
    __syncthreads(); // the tiles have been read, their memory now takes the results
#endif
#pragma unroll
    for (int i = 0; i < FM; i++)
#pragma unroll
        for (int j = 0; j < FN; j++) {
            wmma::store_matrix_sync(own, sum[i][j], 16, wmma::mem_row_major);
            __syncwarp();
            for (int e = lane; e < 256; e += 32) {
                int r = row0 + row + 16 * i + e / 16, c = col0 + col + 16 * j + e % 16;
                long long at = (long long)r * N + c;
                if (r >= M || c >= N)
                    continue;
                if (SPLITK > 1)
                    part[(long long)blockIdx.z * M * N + at] = (part_t)own[e];
                else
                    C[at] = __float2bfloat16(own[e]);
            }
            __syncwarp();
        }
}

extern "C" __global__ void add_parts(const part_t *part, bf16 *C, int count)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;

    if (i >= count)
        return;
    for (int p = 0; p < SPLITK; p++)
        sum += (float)part[(long long)p * count + i];
    C[i] = __float2bfloat16(sum);
}
