// Blocks in clusters of two, which read each other's shared memory.
// Size: n=33554432 small=4096
// Tensor: x in f32 n
// Tensor: y out f32 n
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;

__global__ void __cluster_dims__(2, 1, 1) swap(const float *x, float *y, int64_t n)
{
    __shared__ float mine[256];
    cg::cluster_group cluster = cg::this_cluster();

    for (int64_t base = (int64_t)blockIdx.x * 256; base < n; base += (int64_t)gridDim.x * 256) {
        mine[threadIdx.x] = x[base + threadIdx.x];
        cluster.sync();
        const float *other = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1);
        y[base + threadIdx.x] = other[threadIdx.x] + 0.5f * mine[threadIdx.x];
        cluster.sync();
    }
}

extern "C" void original(const float *x, float *y, int64_t n, cudaStream_t stream)
{
    swap<<<n < 1024 * 256 ? n / 256 : 1024, 256, 0, stream>>>(x, y, n);
}
