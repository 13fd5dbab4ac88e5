// The runtime of a host with three devices, of which one is the current one.
#include "cuda_runtime_api.h"

#define DEVICES 3

static int current;
static cudaError_t last;

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last;

    last = cudaSuccess;
    return error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "invalid device ordinal";
}

cudaError_t cudaGetDevice(int *ret)
{
    *ret = current;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= DEVICES) {
        last = cudaErrorInvalidDevice;
        return last;
    }
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    *ret = DEVICES;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device)
{
    ret->multiProcessorCount = 100 + device;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return cudaSuccess;
}
