// A fill, and a cooperative launch whose grid waits for all of itself.
// Size: n=67108864 small=4096
// Tensor: x in f32 n
// Tensor: y out f32 n
// Tensor: part out f32 264
#include <cooperative_groups.h>
#include <cstdint>

namespace cg = cooperative_groups;

__global__ void centre(const float *x, float *y, float *part, int64_t n)
{
    __shared__ float sum[256];
    int64_t stride = (int64_t)gridDim.x * 256, first = (int64_t)blockIdx.x * 256 + threadIdx.x;
    float mine = 0;

    for (int64_t i = first; i < n; i += stride) {
        mine += x[i];
    }
    sum[threadIdx.x] = mine;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            sum[threadIdx.x] += sum[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        part[blockIdx.x] = sum[0];
    }
    cg::this_grid().sync();
    float total = 0;
    for (unsigned b = 0; b < gridDim.x; b++) {
        total += part[b];
    }
    for (int64_t i = first; i < n; i += stride) {
        y[i] = x[i] - total / (float)n;
    }
}

__global__ void none(float *part)
{
    part[threadIdx.x] = 0;
}

extern "C" void original(const float *x, float *y, float *part, int64_t n, cudaStream_t stream)
{
    unsigned blocks = n < 264 * 256 ? (unsigned)(n / 256) : 264;
    void *arguments[] = {&x, &y, &part, &n};

    none<<<1, 264, 0, stream>>>(part);
    cudaLaunchCooperativeKernel((const void *)centre, dim3(blocks), dim3(256), arguments, 0, stream);
}
