// A block of 16 x 16 threads for each matrix and tile of 32 x 32, 2 x 2 sums for each thread.
#define TILE 32
#define DEPTH 16
//@ launch batched_gemm grid=(B, ceildiv(M, TILE) * ceildiv(N, TILE)) block=(16, 16) args=(a, b, c, M, N, K)

extern "C" __global__ void __launch_bounds__(256)
    batched_gemm(const float *a, const float *b, float *c, int M, int N, int K)
{
    __shared__ float left[TILE][DEPTH + 1], right[DEPTH][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx, across = (N + TILE - 1) / TILE;
    int row0 = blockIdx.y / across * TILE, col0 = blockIdx.y % across * TILE;
    float sum[2][2] = {};

    a += (long long)blockIdx.x * M * K;
    b += (long long)blockIdx.x * K * N;
    c += (long long)blockIdx.x * M * N;
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        for (int e = t; e < TILE * DEPTH; e += 256) {
            int m = row0 + e / DEPTH, k = k0 + e % DEPTH;
            left[e / DEPTH][e % DEPTH] = m < M && k < K ? a[m * K + k] : 0;
        }
        for (int e = t; e < TILE * DEPTH; e += 256) {
            int k = k0 + e / TILE, n = col0 + e % TILE;
            right[e / TILE][e % TILE] = n < N && k < K ? b[k * N + n] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 2; j++)
                    sum[i][j] += left[ty + 16 * i][k] * right[k][tx + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                c[row * N + col] = sum[i][j];
        }
}
