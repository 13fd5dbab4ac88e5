// As much of the CUDA runtime as the headers ask for that stand in for PyTorch's
// (executor/recorder/inline), for tests where there is no CUDA. runtime.c does nothing but say what
// it was told.
#ifndef TESTS_SUPPORT_FAKE_CUDA_CUDA_RUNTIME_API_H
#define TESTS_SUPPORT_FAKE_CUDA_CUDA_RUNTIME_API_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError { cudaSuccess = 0, cudaErrorInvalidDevice = 101 } cudaError_t;
typedef struct fake_stream *cudaStream_t;

struct cudaDeviceProp {
    int multiProcessorCount;
};

cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDevice(int *ret);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceCount(int *ret);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
