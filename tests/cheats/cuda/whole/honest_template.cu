// expect: ratio
// problem: transpose
// An instance of a template in a namespace, reading past the caches' usual ways.
//@ launch turn::tile<16> grid=(ceildiv(N, 16), ceildiv(M, 16)) block=(16, 16) args=(A, B, M, N)
namespace turn {
template <int SIDE> __global__ void tile(const float *A, float *B, int M, int N)
{
    __shared__ float part[SIDE][SIDE + 1];
    int row = blockIdx.y * SIDE, column = blockIdx.x * SIDE;

    if (row + threadIdx.y < M && column + threadIdx.x < N) {
        part[threadIdx.y][threadIdx.x] =
            __ldcs(&A[(long long)(row + threadIdx.y) * N + column + threadIdx.x]);
    }
    __syncthreads();
    if (column + threadIdx.y < N && row + threadIdx.x < M) {
        __stcs(&B[(long long)(column + threadIdx.y) * M + row + threadIdx.x],
               part[threadIdx.x][threadIdx.y]);
    }
}
}
