// Programmatic dependent launches: each may begin while the one before it ends.
// Size: n=33554432 small=4096
// Tensor: x in f32 n
// Tensor: y out f32 n
#include <cstdint>

__global__ void first(const float *x, float *y, int64_t n)
{
    cudaTriggerProgrammaticLaunchCompletion();
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t)gridDim.x * 256) {
        y[i] = x[i] * 0.5f;
    }
}

__global__ void next(float *y, int64_t n)
{
    cudaGridDependencySynchronize();
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < n; i += (int64_t)gridDim.x * 256) {
        y[i] = y[i] * 0.75f + 1.0f;
    }
}

extern "C" void original(const float *x, float *y, int64_t n, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};

    first<<<1056, 256, 0, stream>>>(x, y, n);
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(1056);
    config.blockDim = dim3(256);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    for (int i = 0; i < 4; i++) {
        cudaLaunchKernelEx(&config, next, y, n);
    }
}
