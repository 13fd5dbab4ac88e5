// The CUDA driver API as a table of functions. libcuda.so.1 is loaded at run time by dlopen, so
// that one build runs with and without a GPU. Types and constants are those of the driver's
// documented binary interface; they are declared here so that building needs no CUDA header.
// Everything in executor/gpu that talks to the driver does so through this table. The module must
// not know what the functions are used for.
#ifndef EXECUTOR_GPU_DRIVER_H
#define EXECUTOR_GPU_DRIVER_H

#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

typedef int cu_result; // CUresult
typedef int cu_device;
typedef uint64_t cu_pointer; // CUdeviceptr
typedef struct cu_context *cu_context;
typedef struct cu_module *cu_module;
typedef struct cu_function *cu_function;
typedef struct cu_stream *cu_stream;
typedef struct cu_event *cu_event;
typedef struct cu_graph *cu_graph;
typedef struct cu_graph_exec *cu_graph_exec;
typedef uint64_t cu_memory; // CUmemGenericAllocationHandle

// The results that this program distinguishes.
enum {
    CU_OK = 0,
    CU_OUT_OF_MEMORY = 2,
    CU_NO_DEVICE = 100,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ECC_UNCORRECTABLE = 214,
    CU_NVLINK_UNCORRECTABLE = 220,
    CU_CONTAINED = 226,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_LAUNCH_TIMEOUT = 702,
    CU_ASSERT = 710,
    CU_HARDWARE_STACK_ERROR = 714,
    CU_ILLEGAL_INSTRUCTION = 715,
    CU_MISALIGNED_ADDRESS = 716,
    CU_INVALID_ADDRESS_SPACE = 717,
    CU_INVALID_PC = 718,
    CU_LAUNCH_FAILED = 719,
    CU_COOPERATIVE_TOO_LARGE = 720,
};

// cuDeviceGetAttribute
enum {
    CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_ATTRIBUTE_CLOCK_RATE = 13, // kHz
    CU_ATTRIBUTE_MULTIPROCESSORS = 16,
    CU_ATTRIBUTE_MEMORY_CLOCK_RATE = 36, // kHz
    CU_ATTRIBUTE_BUS_WIDTH = 37,         // bits
    CU_ATTRIBUTE_L2_BYTES = 38,
    CU_ATTRIBUTE_THREADS_PER_MULTIPROCESSOR = 39,
    CU_ATTRIBUTE_MAJOR = 75,
    CU_ATTRIBUTE_MINOR = 76,
    CU_ATTRIBUTE_SMEM_PER_MULTIPROCESSOR = 81,
    CU_ATTRIBUTE_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88, // 1: kernels can use all memory of their process
    CU_ATTRIBUTE_SMEM_PER_BLOCK_OPTIN = 97,
};

// cuFuncSetAttribute, cuFuncGetAttribute
enum {
    CU_FUNCTION_SHARED_BYTES = 1,
    CU_FUNCTION_LOCAL_BYTES = 3, // of one thread
    CU_FUNCTION_REGISTERS = 4,
    CU_FUNCTION_MAX_DYNAMIC_SMEM = 8,
    CU_FUNCTION_NON_PORTABLE_CLUSTER = 14
};
// cuCtxSetLimit
enum { CU_LIMIT_PRINTF_BYTES = 1, CU_LIMIT_HEAP_BYTES = 2, CU_LIMIT_PERSISTING_L2 = 6 };
// cuEventCreate, cuStreamCreate, cuMemHostRegister, cuDevicePrimaryCtxSetFlags
enum {
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_WITHOUT_TIME = 2,
    CU_STREAM_NON_BLOCKING = 1,
    CU_HOST_REGISTER_PORTABLE = 1,
    CU_CONTEXT_SPIN = 1,
    CU_CONTEXT_BLOCKING_SYNC = 4
};
// cuStreamBeginCapture
enum { CU_CAPTURE_THREAD_LOCAL = 1 };
// struct cu_attribute.id
enum { CU_LAUNCH_COOPERATIVE = 2, CU_LAUNCH_CLUSTER = 4, CU_LAUNCH_PDL = 6 };
// cuLaunchKernelEx: entries of `extra`, each followed by its value, for parameters in one piece.
#define CU_PARAMETER_END ((void *)0)
#define CU_PARAMETER_POINTER ((void *)1)
#define CU_PARAMETER_SIZE ((void *)2)

struct cu_attribute { // CUlaunchAttribute: 72 bytes
    int id;           // CU_LAUNCH_…
    int pad;
    union {
        int flag; // cooperative, pdl
        uint32_t cluster[3];
        unsigned char bytes[64];
    } value;
};

struct cu_launch { // CUlaunchConfig
    uint32_t grid[3], block[3], smem;
    cu_stream stream;
    struct cu_attribute *attribute;
    uint32_t attribute_count;
};

struct cu_tensormap { // CUtensorMap
    uint64_t opaque[16];
} __attribute__((aligned(128)));

// cuMemCreate, cuMemSetAccess, cuMemExportToShareableHandle
enum {
    CU_MEMORY_PINNED = 1,
    CU_HANDLE_FD = 1, // a file descriptor
    CU_LOCATION_DEVICE = 1,
    CU_ACCESS_NONE = 0,
    CU_ACCESS_READ_WRITE = 3,
    CU_GRANULARITY_MINIMUM = 0
};

struct cu_location { // CUmemLocation
    int type, id;
};

struct cu_memory_kind { // CUmemAllocationProp
    int type, handle_types;
    struct cu_location location;
    void *unused;
    unsigned char flags[8];
};

struct cu_access { // CUmemAccessDesc
    struct cu_location location;
    int flags;
};

struct cu_uuid {
    unsigned char byte[16];
};

// The table: need, field, symbol in the library, parameters. Without a REQUIRED function
// driver_load fails. The field of an OPTIONAL function that is missing is NULL.
#define DRIVER_FUNCTIONS(X)                                                                        \
    X(REQUIRED, init, "cuInit", (unsigned flags))                                                  \
    X(REQUIRED, driver_version, "cuDriverGetVersion", (int *ret))                                  \
    X(REQUIRED, error_name, "cuGetErrorName", (cu_result result, const char **ret))                \
    X(REQUIRED, error_string, "cuGetErrorString", (cu_result result, const char **ret))            \
    X(REQUIRED, device_count, "cuDeviceGetCount", (int *ret))                                      \
    X(REQUIRED, device_get, "cuDeviceGet", (cu_device * ret, int ordinal))                         \
    X(REQUIRED, device_name, "cuDeviceGetName", (char *ret, int size, cu_device device))           \
    X(REQUIRED, device_uuid, "cuDeviceGetUuid_v2", (struct cu_uuid * ret, cu_device device))       \
    X(REQUIRED, device_memory, "cuDeviceTotalMem_v2", (size_t * ret, cu_device device))            \
    X(REQUIRED, device_attribute, "cuDeviceGetAttribute",                                          \
      (int *ret, int attribute, cu_device device))                                                 \
    X(REQUIRED, context_flags, "cuDevicePrimaryCtxSetFlags_v2",                                    \
      (cu_device device, unsigned flags))                                                          \
    X(REQUIRED, context_retain, "cuDevicePrimaryCtxRetain", (cu_context * ret, cu_device device))  \
    X(REQUIRED, context_release, "cuDevicePrimaryCtxRelease_v2", (cu_device device))               \
    X(REQUIRED, context_set, "cuCtxSetCurrent", (cu_context context))                              \
    X(REQUIRED, context_limit, "cuCtxSetLimit", (int limit, size_t value))                         \
    X(REQUIRED, context_synchronize, "cuCtxSynchronize", (void))                                   \
    X(OPTIONAL, context_reset_l2, "cuCtxResetPersistingL2Cache", (void))                           \
    X(REQUIRED, module_load, "cuModuleLoadData", (cu_module * ret, const void *image))             \
    X(REQUIRED, module_unload, "cuModuleUnload", (cu_module module))                               \
    X(REQUIRED, module_function, "cuModuleGetFunction",                                            \
      (cu_function * ret, cu_module module, const char *name))                                     \
    X(REQUIRED, module_global, "cuModuleGetGlobal_v2",                                             \
      (cu_pointer * ret, size_t * ret_size, cu_module module, const char *name))                   \
    X(REQUIRED, function_get, "cuFuncGetAttribute",                                                \
      (int *ret, int attribute, cu_function function))                                             \
    X(REQUIRED, function_set, "cuFuncSetAttribute",                                                \
      (cu_function function, int attribute, int value))                                            \
    X(REQUIRED, occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor",                          \
      (int *ret, cu_function function, int threads, size_t smem))                                  \
    X(REQUIRED, launch, "cuLaunchKernelEx",                                                        \
      (const struct cu_launch *launch, cu_function function, void **parameters, void **extra))     \
    X(REQUIRED, memory_info, "cuMemGetInfo_v2", (size_t * ret_free, size_t * ret_total))           \
    X(REQUIRED, allocate, "cuMemAlloc_v2", (cu_pointer * ret, size_t size))                        \
    X(REQUIRED, release, "cuMemFree_v2", (cu_pointer pointer))                                     \
    X(REQUIRED, granularity, "cuMemGetAllocationGranularity",                                      \
      (size_t * ret, const struct cu_memory_kind *kind, int option))                               \
    X(REQUIRED, address_reserve, "cuMemAddressReserve",                                            \
      (cu_pointer * ret, size_t size, size_t alignment, cu_pointer wanted, uint64_t flags))        \
    X(REQUIRED, address_free, "cuMemAddressFree", (cu_pointer pointer, size_t size))               \
    X(REQUIRED, memory_create, "cuMemCreate",                                                      \
      (cu_memory * ret, size_t size, const struct cu_memory_kind *kind, uint64_t flags))           \
    X(REQUIRED, memory_release, "cuMemRelease", (cu_memory memory))                                \
    X(REQUIRED, memory_map, "cuMemMap",                                                            \
      (cu_pointer to, size_t size, size_t offset, cu_memory memory, uint64_t flags))               \
    X(REQUIRED, memory_unmap, "cuMemUnmap", (cu_pointer pointer, size_t size))                     \
    X(REQUIRED, memory_access, "cuMemSetAccess",                                                   \
      (cu_pointer pointer, size_t size, const struct cu_access *access, size_t count))             \
    X(REQUIRED, memory_export, "cuMemExportToShareableHandle",                                     \
      (void *ret, cu_memory memory, int type, uint64_t flags))                                     \
    X(REQUIRED, memory_import, "cuMemImportFromShareableHandle",                                   \
      (cu_memory * ret, void *handle, int type))                                                   \
    X(REQUIRED, host_register, "cuMemHostRegister_v2",                                             \
      (void *memory, size_t size, unsigned flags))                                                 \
    X(REQUIRED, host_pointer, "cuMemHostGetDevicePointer_v2",                                      \
      (cu_pointer * ret, void *memory, unsigned flags))                                            \
    X(REQUIRED, copy_to_device, "cuMemcpyHtoDAsync_v2",                                            \
      (cu_pointer to, const void *from, size_t size, cu_stream stream))                            \
    X(REQUIRED, copy_to_host, "cuMemcpyDtoHAsync_v2",                                              \
      (void *to, cu_pointer from, size_t size, cu_stream stream))                                  \
    X(REQUIRED, copy, "cuMemcpyDtoDAsync_v2",                                                      \
      (cu_pointer to, cu_pointer from, size_t size, cu_stream stream))                             \
    X(REQUIRED, set_bytes, "cuMemsetD8Async",                                                      \
      (cu_pointer to, unsigned char value, size_t count, cu_stream stream))                        \
    X(REQUIRED, set_halves, "cuMemsetD16Async",                                                    \
      (cu_pointer to, unsigned short value, size_t count, cu_stream stream))                       \
    X(REQUIRED, set_words, "cuMemsetD32Async",                                                     \
      (cu_pointer to, unsigned value, size_t count, cu_stream stream))                             \
    X(REQUIRED, stream_create, "cuStreamCreate", (cu_stream * ret, unsigned flags))                \
    X(REQUIRED, stream_synchronize, "cuStreamSynchronize", (cu_stream stream))                     \
    X(REQUIRED, stream_wait, "cuStreamWaitEvent",                                                  \
      (cu_stream stream, cu_event event, unsigned flags))                                          \
    X(REQUIRED, event_create, "cuEventCreate", (cu_event * ret, unsigned flags))                   \
    X(REQUIRED, event_destroy, "cuEventDestroy_v2", (cu_event event))                              \
    X(REQUIRED, event_record, "cuEventRecord", (cu_event event, cu_stream stream))                 \
    X(REQUIRED, event_query, "cuEventQuery", (cu_event event))                                     \
    X(REQUIRED, event_elapsed, "cuEventElapsedTime", (float *ret_ms, cu_event from, cu_event to))  \
    X(REQUIRED, capture_begin, "cuStreamBeginCapture_v2", (cu_stream stream, int mode))            \
    X(REQUIRED, capture_end, "cuStreamEndCapture", (cu_stream stream, cu_graph * ret))             \
    X(REQUIRED, graph_make, "cuGraphInstantiateWithFlags",                                         \
      (cu_graph_exec * ret, cu_graph graph, uint64_t flags))                                       \
    X(REQUIRED, graph_launch, "cuGraphLaunch", (cu_graph_exec graph, cu_stream stream))            \
    X(REQUIRED, graph_exec_destroy, "cuGraphExecDestroy", (cu_graph_exec graph))                   \
    X(REQUIRED, graph_destroy, "cuGraphDestroy", (cu_graph graph))                                 \
    X(OPTIONAL, tensormap_tiled, "cuTensorMapEncodeTiled",                                         \
      (struct cu_tensormap * ret, int type, uint32_t rank, void *address, const uint64_t *extent,  \
       const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride,                \
       int interleave, int swizzle, int l2, int fill))                                             \
    X(OPTIONAL, max_clusters, "cuOccupancyMaxActiveClusters",                                      \
      (int *ret, cu_function function, const struct cu_launch *launch))

struct driver {
    void *library; // handle of dlopen; NULL: not loaded
#define X(need, field, symbol, parameters) cu_result(*field) parameters;
    DRIVER_FUNCTIONS(X)
#undef X
};

// Loads libcuda.so.1 and fills the table. ERR_NOT_FOUND when there is no such library, ERR_VERSION
// when it lacks a required function, which the sentence names. Does not call cuInit, but has it
// load all code of a module with the module: otherwise the driver loads each kernel at its first
// launch, and of two that are the same the one that was loaded later takes up to 100 ns longer
// (docs/measuring.md). The library stays loaded until the process ends.
MUST_CHECK int driver_load(struct driver *driver, struct err *err);

// Returns a result in words: "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was
// encountered)", or "CUDA error 999" when the driver does not know it. The text is in buf.
const char *driver_error(const struct driver *driver, cu_result result, char buf[static 256]);

// Returns 0 when the result is CU_OK, otherwise ERR_SYSTEM with the sentence "WHAT: CUDA_ERROR_…".
MUST_CHECK int driver_check(const struct driver *driver, cu_result result, const char *what,
                            struct err *err);

#endif
