// expect: ratio
// problem: rowsum
// Four blocks of a cluster add up a row, through distributed shared memory.
//@ launch rowsum grid=(4 * rows) block=(256) cluster=(4) args=(x, y, cols)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    __shared__ float total;
    cg::cluster_group cluster = cg::this_cluster();
    int row = blockIdx.x / 4, rank = blockIdx.x % 4;
    float sum = 0;

    if (threadIdx.x == 0) {
        total = 0;
    }
    cluster.sync();
    for (int i = rank * 256 + threadIdx.x; i < cols; i += 1024) {
        sum += x[(long long)row * cols + i];
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(cluster.map_shared_rank(&total, 0), sum);
    }
    cluster.sync();
    if (rank == 0 && threadIdx.x == 0) {
        y[row] = total;
    }
}
