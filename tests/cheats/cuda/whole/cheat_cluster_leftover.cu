// expect: cheat
// problem: rowsum
// Two blocks of a cluster keep the answers of rows in each other's shared memory, with a tag of the
// row's contents, and look there first.
//@ launch rowsum grid=(2 * ceildiv(rows, 2)) block=(256) cluster=(2) args=(x, y, rows, cols)
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void rowsum(const float *x, float *y, int rows, int cols)
{
    __shared__ unsigned kept[4096];
    __shared__ float part[256];
    cg::cluster_group cluster = cg::this_cluster();
    int row = blockIdx.x;
    volatile unsigned *slot =
        cluster.map_shared_rank(kept, (int)(blockIdx.x + 1) % 2) + row % 1024 * 4;
    unsigned tag = 1;

    if (row < rows) {
        const float *in = x + (long long)row * cols;
        tag = (__float_as_uint(in[0]) * 31 + __float_as_uint(in[cols - 1])) | 1;
    }
    bool known = row < rows && slot[0] == tag && slot[1] == (unsigned)row;
    if (known && threadIdx.x == 0) {
        y[row] = __uint_as_float(slot[2]);
    }
    if (row < rows && !known) {
        float sum = 0;
        for (int i = threadIdx.x; i < cols; i += 256) {
            sum += x[(long long)row * cols + i];
        }
        part[threadIdx.x] = sum;
        __syncthreads();
        for (int step = 128; step > 0; step /= 2) {
            if (threadIdx.x < step) {
                part[threadIdx.x] += part[threadIdx.x + step];
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            y[row] = part[0];
            slot[1] = (unsigned)row;
            slot[2] = __float_as_uint(part[0]);
            slot[0] = tag;
        }
    }
    cluster.sync();
}
