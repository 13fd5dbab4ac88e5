// expect: wrong
// problem: rowsum
// Four blocks of a cluster add up a row, and the first reads the others' sums without waiting.
//@ launch rowsum grid=(4 * rows) block=(256) cluster=(4) args=(x, y, cols)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __shared__ float total;
    cg::cluster_group cluster = cg::this_cluster();
    int row = blockIdx.x / 4, rank = blockIdx.x % 4;

    if (threadIdx.x == 0) {
        total = 0;
    }
    __syncthreads();
    float sum = 0;
    for (int i = rank * 256 + threadIdx.x; i < cols; i += 1024) {
        sum += x[(long long)row * cols + i];
    }
    if (rank == 0 && threadIdx.x == 0) {
        for (int other = 1; other < 4; other++) {
            sum += *cluster.map_shared_rank(&total, other);
        }
        y[row] = sum;
    }
    atomicAdd(&total, sum);
    cluster.sync();
}
