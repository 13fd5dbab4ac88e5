// Start, devices, contexts and memory of libcuda.so.1.
#include "tests/support/fake_gpu/fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRIVER_VERSION 13000

struct cu_context {
    unsigned retained;
};

struct fake fake;
static struct cu_context contexts[FAKE_GPU_MAX];

cu_result fake_state(void)
{
    return !fake.initialised ? CU_NOT_INITIALIZED
           : !fake.current   ? CU_INVALID_CONTEXT
                             : fake.sticky;
}

void fake_wait(void)
{
    while (fake.hung) {
        pause();
    }
}

static bool has_fault(const char *word)
{
    return fake_fault(&fake.settings, word);
}

// ---- start, names, devices ----

CALL(cuInit, unsigned flags)
{
    struct fake_settings settings;

    if (flags != 0 || !fake_settings_read(&settings, getenv("KCAST_FAKE_GPU"))) {
        return CU_INVALID_VALUE;
    }
    if (fake_fault(&settings, "no-device") ||
        (settings.count > 0 && fake_visible(&settings) == (int)settings.count)) {
        return CU_NO_DEVICE;
    }
    if (fake_fault(&settings, "init")) {
        return 999;
    }
    if (fake.contexts == 0) {
        const char *loading = getenv("CUDA_MODULE_LOADING");

        fake = (struct fake){.initialised = true,
                             .lazy = !loading || strcmp(loading, "EAGER") != 0,
                             .settings = settings,
                             .random = settings.seed};
    }
    return CU_OK;
}

CALL(cuDriverGetVersion, int *ret)
{
    *ret = DRIVER_VERSION;
    return CU_OK;
}

static const struct {
    cu_result result;
    const char *name, *text;
} result_names[] = {
    {CU_OK, "CUDA_SUCCESS", "no error"},
    {CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CU_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CU_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CU_ASSERT, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {CU_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CU_COOPERATIVE_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in cooperative launch"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "cluster misconfiguration"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static cu_result describe(cu_result result, const char **ret, bool name)
{
    for (size_t i = 0; i < sizeof(result_names) / sizeof(result_names[0]); i++) {
        if (result_names[i].result == result) {
            *ret = name ? result_names[i].name : result_names[i].text;
            return CU_OK;
        }
    }
    *ret = NULL;
    return CU_INVALID_VALUE;
}

CALL(cuGetErrorName, cu_result result, const char **ret)
{
    return describe(result, ret, true);
}

CALL(cuGetErrorString, cu_result result, const char **ret)
{
    return describe(result, ret, false);
}

CALL(cuDeviceGetCount, int *ret)
{
    if (!fake.initialised) {
        return CU_NOT_INITIALIZED;
    }
    *ret = fake_visible(&fake.settings) < 0 ? (int)fake.settings.count : 1;
    return CU_OK;
}

CALL(cuDeviceGet, cu_device *ret, int ordinal)
{
    int only = fake.initialised ? fake_visible(&fake.settings) : -1;
    NEED_DEVICE(ordinal);
    if (only >= 0 && ordinal > 0) {
        return 101; // CUDA_ERROR_INVALID_DEVICE
    }
    *ret = only < 0 ? ordinal : only;
    return CU_OK;
}

CALL(cuDeviceGetName, char *ret, int size, cu_device device)
{
    NEED_DEVICE(device);
    snprintf(ret, (size_t)size, "%s", fake.settings.name);
    return CU_OK;
}

CALL(cuDeviceGetUuid_v2, struct cu_uuid *ret, cu_device device)
{
    NEED_DEVICE(device);
    fake_uuid((unsigned)device, ret->byte);
    return CU_OK;
}

CALL(cuDeviceTotalMem_v2, size_t *ret, cu_device device)
{
    NEED_DEVICE(device);
    *ret = fake.settings.memory_bytes;
    return CU_OK;
}

CALL(cuDeviceGetAttribute, int *ret, int attribute, cu_device device)
{
    const struct {
        int attribute, value;
    } values[] = {
        {CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_ATTRIBUTE_CLOCK_RATE, 1980000},
        {CU_ATTRIBUTE_MULTIPROCESSORS, FAKE_MULTIPROCESSORS},
        {CU_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
        {CU_ATTRIBUTE_BUS_WIDTH, 6144},
        {CU_ATTRIBUTE_THREADS_PER_MULTIPROCESSOR, 2048},
        {CU_ATTRIBUTE_SMEM_PER_MULTIPROCESSOR, FAKE_SMEM},
        {CU_ATTRIBUTE_REGISTERS_PER_MULTIPROCESSOR, 65536},
        {CU_ATTRIBUTE_SMEM_PER_BLOCK_OPTIN, FAKE_SMEM_OPTIN},
        {CU_ATTRIBUTE_L2_BYTES, (int)fake.settings.l2_bytes},
        {CU_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, (int)fake.settings.pageable},
        {CU_ATTRIBUTE_MAJOR, (int)fake.settings.arch / 10},
        {CU_ATTRIBUTE_MINOR, (int)fake.settings.arch % 10},
    };

    NEED_DEVICE(device);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (values[i].attribute == attribute) {
            *ret = values[i].value;
            return CU_OK;
        }
    }
    return CU_INVALID_VALUE;
}

// ---- contexts ----

CALL(cuDevicePrimaryCtxSetFlags_v2, cu_device device, unsigned flags)
{
    NEED_DEVICE(device);
    return flags > 7 ? CU_INVALID_VALUE : CU_OK;
}

CALL(cuDevicePrimaryCtxRetain, cu_context *ret, cu_device device)
{
    NEED_DEVICE(device);
    if (has_fault("context")) {
        return 46;
    }
    contexts[device].retained++;
    fake.contexts++;
    *ret = &contexts[device];
    return CU_OK;
}

// Frees everything that belongs to the context.
static void release_everything(void)
{
    fake_unload_all();
    fake_release_all();
    fake_free_streams();
}

CALL(cuDevicePrimaryCtxRelease_v2, cu_device device)
{
    NEED_DEVICE(device);
    if (contexts[device].retained == 0) {
        return CU_INVALID_CONTEXT;
    }
    fake_wait();
    contexts[device].retained--;
    fake.contexts--;
    if (fake.contexts == 0) {
        release_everything();
    }
    if (contexts[device].retained == 0 && fake.current == &contexts[device]) {
        fake.current = NULL;
    }
    return CU_OK;
}

CALL(cuCtxSetCurrent, cu_context context)
{
    if (!fake.initialised) {
        return CU_NOT_INITIALIZED;
    }
    if (context && context->retained == 0) {
        return CU_INVALID_CONTEXT;
    }
    fake.current = context;
    return CU_OK;
}

CALL(cuCtxSetLimit, int limit, size_t value)
{
    NEED_CONTEXT;
    (void)value;
    return limit < 0 || limit > 6 ? CU_INVALID_VALUE : CU_OK;
}

CALL(cuCtxSynchronize, void)
{
    NEED_CONTEXT;
    fake_wait();
    return CU_OK;
}

CALL(cuCtxResetPersistingL2Cache, void)
{
    NEED_CONTEXT;
    return CU_OK;
}

// ---- memory ----

CALL(cuMemGetInfo_v2, size_t *ret_free, size_t *ret_total)
{
    NEED_CONTEXT;
    *ret_total = fake.settings.memory_bytes;
    *ret_free = fake.settings.memory_bytes - fake.used_bytes;
    return CU_OK;
}

CALL(cuMemAlloc_v2, cu_pointer *ret, size_t size)
{
    NEED_CONTEXT;
    if (fake_out_of_memory()) {
        return CU_OUT_OF_MEMORY;
    }
    return fake_allocate(size, ret);
}

CALL(cuMemFree_v2, cu_pointer pointer)
{
    NEED_CONTEXT;
    fake_wait();
    return fake_release(pointer);
}

CALL(cuMemHostRegister_v2, void *memory, size_t size, unsigned flags)
{
    NEED_CONTEXT;
    return !memory || size == 0 || flags > 15 ? CU_INVALID_VALUE : CU_OK;
}

CALL(cuMemHostGetDevicePointer_v2, cu_pointer *ret, void *memory, unsigned flags)
{
    NEED_CONTEXT;
    *ret = (cu_pointer)(uintptr_t)memory;
    return !memory || flags != 0 ? CU_INVALID_VALUE : CU_OK;
}

// Copies at once, unless a kernel before it never ends.
static cu_result copy(void *to, const void *from, size_t size, cu_stream stream)
{
    if (fake_enter(stream)) {
        memmove(to, from, size);
        fake.stream->ns += FAKE_COPY_NS + size / FAKE_BYTES_PER_NS;
    }
    return CU_OK;
}

CALL(cuMemcpyHtoDAsync_v2, cu_pointer to, const void *from, size_t size, cu_stream stream)
{
    NEED_CONTEXT;
    return fake_holds(to, size) ? copy((void *)(uintptr_t)to, from, size, stream)
                                : CU_INVALID_VALUE;
}

CALL(cuMemcpyDtoHAsync_v2, void *to, cu_pointer from, size_t size, cu_stream stream)
{
    NEED_CONTEXT;
    return fake_holds(from, size) ? copy(to, (const void *)(uintptr_t)from, size, stream)
                                  : CU_INVALID_VALUE;
}

static cu_result copy_again(const struct fake_work *work)
{
    return copy((void *)(uintptr_t)work->to, (const void *)(uintptr_t)work->from, work->count,
                work->stream);
}

CALL(cuMemcpyDtoDAsync_v2, cu_pointer to, cu_pointer from, size_t size, cu_stream stream)
{
    struct fake_work work = {
        .act = copy_again, .to = to, .from = from, .count = size, .stream = stream};
    cu_result result;

    NEED_CONTEXT;
    if (!fake_holds(to, size) || !fake_holds(from, size)) {
        return CU_INVALID_VALUE;
    }
    if (fake_keep(&work, &result)) {
        return result;
    }
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size, stream);
}

// Stores the arguments where the real driver stores its own encoding.
CALL(cuTensorMapEncodeTiled, struct cu_tensormap *ret, int type, uint32_t rank, void *address,
     const uint64_t *extent, const uint64_t *stride, const uint32_t *box,
     const uint32_t *element_stride, int interleave, int swizzle, int l2, int fill)
{
    NEED_CONTEXT;
    if (type < 0 || type > 15 || rank < 1 || rank > 5 || (uintptr_t)address % 16 != 0 ||
        interleave < 0 || swizzle < 0 || swizzle > 6 || l2 < 0 || l2 > 3 || fill < 0 || fill > 1) {
        return CU_INVALID_VALUE;
    }
    memset(ret, 0, sizeof(*ret));
    ret->opaque[0] = (uint64_t)(uintptr_t)address;
    for (uint32_t i = 0; i < rank; i++) {
        if (extent[i] == 0 || box[i] == 0 || box[i] > 256 || element_stride[i] < 1 ||
            element_stride[i] > 8 || (i + 1 < rank && stride[i] % 16 != 0)) {
            return CU_INVALID_VALUE;
        }
        ret->opaque[1 + i] = extent[i];
        ret->opaque[6 + i] = box[i];
    }
    return CU_OK;
}

// The executor does not use this. NVRTC, which loads the driver itself, asks for it.
CALL(cuGetExportTable, const void **ret, const struct cu_uuid *id)
{
    (void)ret;
    (void)id;
    return 801; // CUDA_ERROR_NOT_SUPPORTED
}
