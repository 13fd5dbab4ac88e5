// Tensor cores: tiles of 64 x 64 by four warps, each of them 2 x 2 fragments of 16 x 16; 32 columns of
// A and rows of B at once in shared memory.
#define TILE 64
#define DEPTH 32
//@ launch bf16_gemm grid=(ceildiv(N, TILE), ceildiv(M, TILE)) block=(128) args=(A, B, C, M, N, K)
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void __launch_bounds__(128)
    bf16_gemm(const __nv_bfloat16 *A, const __nv_bfloat16 *B, __nv_bfloat16 *C, int M, int N, int K)
{
    __shared__ __align__(128) __nv_bfloat16 a[TILE][DEPTH + 8], b[DEPTH][TILE + 8];
    __shared__ __align__(128) float result[4][16][16];
    int t = threadIdx.x, warp = t / 32, lane = t % 32;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    int row = warp / 2 * 32, col = warp % 2 * 32;
    __nv_bfloat16 zero = __float2bfloat16(0.0f);
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];

    for (int i = 0; i < 4; i++)
        wmma::fill_fragment(sum[i / 2][i % 2], 0.0f);
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        for (int e = t; e < TILE * DEPTH; e += 128) {
            int m = row0 + e / DEPTH, k = k0 + e % DEPTH;
            a[e / DEPTH][e % DEPTH] = m < M && k < K ? A[(long long)m * K + k] : zero;
        }
        for (int e = t; e < TILE * DEPTH; e += 128) {
            int k = k0 + e / TILE, n = col0 + e % TILE;
            b[e / TILE][e % TILE] = n < N && k < K ? B[(long long)k * N + n] : zero;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left[2];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> right[2];
            for (int i = 0; i < 2; i++) {
                wmma::load_matrix_sync(left[i], &a[row + 16 * i][k], DEPTH + 8);
                wmma::load_matrix_sync(right[i], &b[k][col + 16 * i], TILE + 8);
            }
            for (int i = 0; i < 4; i++)
                wmma::mma_sync(sum[i / 2][i % 2], left[i / 2], right[i % 2], sum[i / 2][i % 2]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++) {
        wmma::store_matrix_sync(&result[warp][0][0], sum[i / 2][i % 2], 16, wmma::mem_row_major);
        __syncwarp();
        for (int e = lane; e < 256; e += 32) {
            int r = row0 + row + i / 2 * 16 + e / 16, c = col0 + col + i % 2 * 16 + e % 16;
            if (r < M && c < N)
                C[(long long)r * N + c] = __float2bfloat16(result[warp][e / 16][e % 16]);
        }
        __syncwarp();
    }
}
