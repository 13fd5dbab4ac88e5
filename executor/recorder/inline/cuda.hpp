// PyTorch's side of the CUDA runtime: the stream that work goes to, guards of devices, checks.
#pragma once
#include "kcast/tensor.hpp"
#include <cuda_runtime_api.h>
#ifdef KCAST_CUBLAS // the candidate's text names it
#include <cublas_v2.h>
#endif

#define C10_CUDA_CHECK(call)                                                                       \
    do {                                                                                           \
        const cudaError_t kcast_error = (call);                                                    \
        TORCH_CHECK(kcast_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(kcast_error));  \
    } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)

namespace c10 {
namespace cuda {

class CUDAStream {
    cudaStream_t handle;

  public:
    explicit CUDAStream(cudaStream_t of) : handle(of) {}
    cudaStream_t stream() const { return handle; }
    operator cudaStream_t() const { return handle; }
    void synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(handle)); }
};

inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1)
{
    int64_t handle = kcast::ask("stream", {static_cast<int64_t>(device)});

    return CUDAStream(reinterpret_cast<cudaStream_t>(static_cast<uintptr_t>(handle)));
}

inline DeviceIndex current_device()
{
    int device = 0;

    C10_CUDA_CHECK(cudaGetDevice(&device));
    return static_cast<DeviceIndex>(device);
}

inline DeviceIndex device_count() noexcept
{
    int count = 0;

    return cudaGetDeviceCount(&count) == cudaSuccess ? static_cast<DeviceIndex>(count)
                                                     : DeviceIndex(0);
}

inline void set_device(DeviceIndex device) { C10_CUDA_CHECK(cudaSetDevice(device)); }
inline void device_synchronize() { C10_CUDA_CHECK(cudaDeviceSynchronize()); }

// Another device is the current one until this goes.
class OptionalCUDAGuard {
    optional<DeviceIndex> before;

  public:
    OptionalCUDAGuard() = default;
    explicit OptionalCUDAGuard(optional<Device> device)
    {
        if (device) {
            set_device(*device);
        }
    }
    explicit OptionalCUDAGuard(Device device) { set_device(device); }
    explicit OptionalCUDAGuard(DeviceIndex index) { set_index(index); }
    OptionalCUDAGuard(const OptionalCUDAGuard &) = delete;
    OptionalCUDAGuard &operator=(const OptionalCUDAGuard &) = delete;
    ~OptionalCUDAGuard()
    {
        if (before) {
            (void)cudaSetDevice(*before);
        }
    }
    void set_device(Device device)
    {
        TORCH_CHECK(device.is_cuda(), "Expected a CUDA device, but got ", device);
        set_index(device.index());
    }
    void set_index(DeviceIndex index)
    {
        DeviceIndex now = current_device();

        if (index >= 0 && index != now) {
            before = before.value_or(now);
            C10_CUDA_CHECK(cudaSetDevice(index));
        }
    }
};

class CUDAGuard : public OptionalCUDAGuard {
  public:
    explicit CUDAGuard(Device device) : OptionalCUDAGuard(device) {}
    explicit CUDAGuard(DeviceIndex index) : OptionalCUDAGuard(index) {}
};

} // namespace cuda
} // namespace c10

namespace at {
namespace cuda {
using namespace c10::cuda;

inline cudaDeviceProp *getDeviceProperties(DeviceIndex device)
{
    static cudaDeviceProp known;

    C10_CUDA_CHECK(cudaGetDeviceProperties(&known, device));
    return &known;
}

inline cudaDeviceProp *getCurrentDeviceProperties()
{
    return getDeviceProperties(current_device());
}

inline int warp_size() { return 32; }

#ifdef KCAST_CUBLAS
// PyTorch's own handle, which is on the current stream.
inline cublasHandle_t getCurrentCUDABlasHandle()
{
    int64_t handle = kcast::ask("cuda.current_blas_handle", {});

    return reinterpret_cast<cublasHandle_t>(static_cast<uintptr_t>(handle));
}
#define TORCH_CUDABLAS_CHECK(call)                                                                 \
    do {                                                                                           \
        const cublasStatus_t kcast_status = (call);                                                \
        TORCH_CHECK(kcast_status == CUBLAS_STATUS_SUCCESS, "CUDA error: cuBLAS status ",           \
                    kcast_status);                                                                 \
    } while (0)
#endif

template <class T> T ceil_div(T a, T b) { return (a + b - 1) / b; }
} // namespace cuda
template <class T> T ceil_div(T a, T b) { return (a + b - 1) / b; }

namespace detail {
inline Tensor empty_cuda(IntArrayRef size, const TensorOptions &options)
{
    return empty(size, options.device(options.device_opt().value_or(kCUDA)));
}
inline Tensor empty_cuda(IntArrayRef size, ScalarType type, optional<Device> device,
                         optional<MemoryFormat> format)
{
    TensorOptions options = TensorOptions(type).device(device.value_or(kCUDA));

    return format && *format != MemoryFormat::Contiguous
               ? make("empty", options, size, kcast::named("memory_format", *format))
               : empty(size, options);
}
inline Tensor empty_strided_cuda(IntArrayRef size, IntArrayRef stride, const TensorOptions &options)
{
    return empty_strided(size, stride, options.device(options.device_opt().value_or(kCUDA)));
}
inline Tensor empty_strided_cuda(IntArrayRef size, IntArrayRef stride, ScalarType type,
                                 optional<Device> device)
{
    return empty_strided_cuda(size, stride, TensorOptions(type).device(device.value_or(kCUDA)));
}
} // namespace detail
} // namespace at

namespace torch {
namespace cuda {
inline void synchronize(int64_t = -1) { c10::cuda::device_synchronize(); }
} // namespace cuda
} // namespace torch
