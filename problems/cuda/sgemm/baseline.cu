// Tiles of 64 x 64 by 256 threads, each of them 4 x 4 sums; 16 columns of A and rows of B at once.
#define TILE 64
#define DEPTH 16
//@ launch sgemm grid=(ceildiv(N, TILE), ceildiv(M, TILE)) block=(256) args=(A, B, C, M, N, K)

extern "C" __global__ void __launch_bounds__(256)
    sgemm(const float *A, const float *B, float *C, int M, int N, int K)
{
    __shared__ float a[DEPTH][TILE + 1], b[DEPTH][TILE];
    int t = threadIdx.x, tx = t % 16, ty = t / 16;
    int row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
    float sum[4][4] = {};

    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        for (int e = t; e < TILE * DEPTH; e += 256) {
            int m = e / DEPTH, k = e % DEPTH;
            bool in = row0 + m < M && k0 + k < K;
            a[k][m] = in ? A[(long long)(row0 + m) * K + k0 + k] : 0;
        }
        for (int e = t; e < TILE * DEPTH; e += 256) {
            int k = e / TILE, n = e % TILE;
            bool in = col0 + n < N && k0 + k < K;
            b[k][n] = in ? B[(long long)(k0 + k) * N + col0 + n] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < DEPTH; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    sum[i][j] += a[k][ty + 16 * i] * b[k][tx + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int row = row0 + ty + 16 * i, col = col0 + tx + 16 * j;
            if (row < M && col < N)
                C[(long long)row * N + col] = sum[i][j];
        }
}
