//@ launch transpose grid=(ceildiv(N, 32)*ceildiv(M, 32)) block=(32, 8) args=(A, B, M, N)

// Tiles of 32 x 32 through shared memory; one column more keeps a warp off a single bank.
extern "C" __global__ void transpose(const float *A, float *B, int M, int N)
{
    __shared__ float tile[32][33];
    int across = (N + 31) / 32;
    int row = (int)blockIdx.x / across * 32, column = (int)blockIdx.x % across * 32;

    for (int i = threadIdx.y; i < 32; i += 8) {
        if (row + i < M && column + threadIdx.x < N) {
            tile[i][threadIdx.x] = A[(long long)(row + i) * N + column + threadIdx.x];
        }
    }
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += 8) {
        if (column + i < N && row + threadIdx.x < M) {
            B[(long long)(column + i) * M + row + threadIdx.x] = tile[threadIdx.x][i];
        }
    }
}
