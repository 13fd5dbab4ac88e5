// The device, its memory, images and kernels.
#include "tests/support/fake_capture/capture.h"
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RANGES_MAX 64
#define FAT_BINARY 0xba55ed50u

struct range {
    uint64_t at;
    size_t bytes;
};

struct module {
    char *names; // "NAME NAME "
};

int broken;

static struct range reserved[RANGES_MAX], usable[1024];
static size_t reserved_count, usable_count;

CALL(cuInit, unsigned flags)
{
    return flags == 0 ? OK : INVALID_VALUE;
}

CALL(cuDeviceGet, int *ret, int ordinal)
{
    *ret = ordinal;
    return ordinal == 0 ? OK : INVALID_VALUE;
}

CALL(cuDevicePrimaryCtxRetain, void **ret, int device)
{
    static int context;

    *ret = &context;
    return device == 0 ? broken : INVALID_VALUE;
}

CALL(cuCtxSetCurrent, void *context)
{
    return context ? broken : INVALID_VALUE;
}

CALL(cuCtxSynchronize, void)
{
    return broken;
}

CALL(cuGetErrorName, int result, const char **ret)
{
    *ret = result == ILLEGAL_ADDRESS       ? "CUDA_ERROR_ILLEGAL_ADDRESS"
           : result == OUT_OF_MEMORY       ? "CUDA_ERROR_OUT_OF_MEMORY"
           : result == CAPTURE_UNSUPPORTED ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
           : result == CAPTURE_UNJOINED    ? "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"
           : result == CAPTURE_ISOLATION   ? "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"
                                           : "CUDA_ERROR_INVALID_VALUE";
    return OK;
}

// ---- memory ----

static bool holds(const struct range *range, size_t count, uint64_t at, size_t bytes)
{
    for (size_t i = 0; i < count; i++) {
        if (at >= range[i].at && bytes <= range[i].bytes &&
            at - range[i].at <= range[i].bytes - bytes) {
            return true;
        }
    }
    return false;
}

bool memory_holds(uint64_t at, size_t bytes)
{
    return holds(usable, usable_count, at, bytes);
}

CALL(cuMemAddressReserve, uint64_t *ret, size_t bytes, size_t alignment, uint64_t wanted,
     uint64_t flags)
{
    if (reserved_count == RANGES_MAX || alignment != 0 || flags != 0) {
        return INVALID_VALUE;
    }
    void *at = mmap((void *)(uintptr_t)wanted, bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED) {
        return OUT_OF_MEMORY;
    }
    *ret = (uint64_t)(uintptr_t)at;
    reserved[reserved_count++] = (struct range){*ret, bytes};
    return OK;
}

// What a thread may do while a stream is captured: 0, the default, allows no memory of its own.
static int capture_mode;

CALL(cuThreadExchangeStreamCaptureMode, int *mode)
{
    int before = capture_mode;

    capture_mode = *mode;
    *mode = before;
    return OK;
}

CALL(cuMemCreate, uint64_t *ret, size_t bytes, const void *kind, uint64_t flags)
{
    *ret = bytes; // a handle needs to be nothing else here
    if (capture_mode != 2 && is_capturing()) {
        return CAPTURE_UNSUPPORTED;
    }
    return kind && flags == 0 ? broken : INVALID_VALUE;
}

// Memory of another process's fake driver (tests/support/fake_gpu). Its handle is an odd number.
CALL(cuMemImportFromShareableHandle, uint64_t *ret, void *handle, int type)
{
    int fd = fcntl((int)(intptr_t)handle, F_DUPFD_CLOEXEC, 3);

    *ret = 2 * (uint64_t)fd + 1;
    return type == 1 && fd >= 0 ? broken : INVALID_VALUE;
}

static bool map_imported(uint64_t at, size_t bytes, int fd)
{
    return mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) !=
           MAP_FAILED;
}

CALL(cuMemMap, uint64_t at, size_t bytes, size_t offset, uint64_t memory, uint64_t flags)
{
    bool imported = memory % 2 == 1;

    if (!holds(reserved, reserved_count, at, bytes) || offset != 0 || flags != 0 ||
        (!imported && memory != bytes) ||
        (imported && !map_imported(at, bytes, (int)(memory / 2)))) {
        return INVALID_VALUE;
    }
    return broken;
}

CALL(cuMemSetAccess, uint64_t at, size_t bytes, const void *access, size_t count)
{
    struct range *last = usable_count > 0 ? &usable[usable_count - 1] : NULL;

    if (!holds(reserved, reserved_count, at, bytes) || !access || count != 1 ||
        usable_count == sizeof(usable) / sizeof(usable[0]) ||
        mprotect((void *)(uintptr_t)at, bytes, PROT_READ | PROT_WRITE) != 0) {
        return INVALID_VALUE;
    }
    if (last && last->at + last->bytes == at) {
        last->bytes += bytes;
    } else {
        usable[usable_count++] = (struct range){at, bytes};
    }
    return broken;
}

CALL(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t bytes)
{
    if (!memory_holds(from, bytes)) {
        return INVALID_VALUE;
    }
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return broken;
}

CALL(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes)
{
    if (!memory_holds(to, bytes)) {
        return INVALID_VALUE;
    }
    memcpy((void *)(uintptr_t)to, from, bytes);
    return broken;
}

CALL(cuMemsetD8_v2, uint64_t to, unsigned char value, size_t bytes)
{
    if (!memory_holds(to, bytes)) {
        return INVALID_VALUE;
    }
    memset((void *)(uintptr_t)to, value, bytes);
    return broken;
}

// ---- images and kernels ----

// How long an image is: a fat binary says so, and a cubin of the tests ends with its sections.
static size_t image_bytes(const unsigned char *image)
{
    uint64_t at;
    uint32_t magic;
    uint16_t count;

    memcpy(&magic, image, sizeof(magic));
    if (magic == FAT_BINARY) {
        memcpy(&at, image + 8, sizeof(at));
        return 16 + at;
    }
    memcpy(&at, image + 40, sizeof(at));
    memcpy(&count, image + 60, sizeof(count));
    return at + 64 * (size_t)count;
}

CALL(cuModuleLoadData, struct module **ret, const unsigned char *image)
{
    const char *names = memmem(image, image_bytes(image), "fake:", 5);

    if (!names) {
        return INVALID_IMAGE;
    }
    *ret = calloc(1, sizeof(**ret));
    if (!*ret || !((*ret)->names = strdup(names + 5))) {
        return OUT_OF_MEMORY;
    }
    return broken;
}

static bool has(const struct module *module, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = module->names; *at; at += strspn(at, " ")) {
        size_t here = strcspn(at, " ");

        if (here == len && strncmp(at, name, len) == 0) {
            return true;
        }
        at += here;
    }
    return false;
}

CALL(cuModuleGetFunction, struct function **ret, struct module *module, const char *name)
{
    if (!has(module, name) || strlen(name) >= sizeof((*ret)->name)) {
        return NOT_FOUND;
    }
    *ret = calloc(1, sizeof(**ret));
    if (!*ret) {
        return OUT_OF_MEMORY;
    }
    (*ret)->module = module;
    memcpy((*ret)->name, name, strlen(name));
    return broken;
}

CALL(cuFuncGetName, const char **ret, const struct function *function)
{
    *ret = function->name;
    return OK;
}

CALL(cuFuncGetModule, struct module **ret, const struct function *function)
{
    *ret = function->module;
    return OK;
}

static bool is(const char *name, const char *kernel)
{
    return strncmp(name, kernel, strlen(kernel)) == 0;
}

size_t kernel_parameters(const char *name, size_t size[static PARAMETERS_MAX])
{
    const size_t usual[PARAMETERS_MAX] = {8, 8, 4, 4};

    memcpy(size, usual, sizeof(usual));
    return is(name, "fk_scale") || is(name, "fk_times")                               ? 4
           : is(name, "fk_copy") || is(name, "fk_double") || is(name, "fk_magnitude") ? 3
                                                                                      : 0;
}

CALL(cuFuncGetParamInfo, const struct function *function, size_t index, size_t *ret_at,
     size_t *ret_bytes)
{
    size_t size[PARAMETERS_MAX], count = kernel_parameters(function->name, size);

    if (index >= count) {
        return INVALID_VALUE;
    }
    *ret_at = 0;
    for (size_t i = 0; i < index; i++) {
        *ret_at += size[i]; // none needs a gap before it
    }
    *ret_bytes = size[index];
    return OK;
}

static void compute(const char *name, const void *x, void *y, int n, float a)
{
    for (int i = 0; i < n; i++) {
        if (is(name, "fk_double")) {
            ((double *)y)[i] = (double)((const float *)x)[i];
        } else if (is(name, "fk_times")) {
            ((double *)y)[i] = (double)a * ((const double *)x)[i];
        } else if (is(name, "fk_magnitude")) {
            ((double *)y)[i] = fabs(((const double *)x)[i]);
        } else {
            ((float *)y)[i] = a * ((const float *)x)[i];
        }
    }
}

static int run_kernel(const struct node *node)
{
    const char *name = node->function->name;
    uint64_t x, y;
    float a = 1;
    int n;

    if (is(name, "fk_fault")) {
        broken = ILLEGAL_ADDRESS;
        return broken;
    }
    size_t size[PARAMETERS_MAX], count = kernel_parameters(name, size);
    if (count == 0) {
        return OK;
    }
    bool from_doubles = is(name, "fk_times") || is(name, "fk_magnitude");
    bool doubles = from_doubles || is(name, "fk_double");
    memcpy(&x, node->value[0], sizeof(x));
    memcpy(&y, node->value[1], sizeof(y));
    memcpy(&n, node->value[2], sizeof(n));
    if (count == 4) {
        memcpy(&a, node->value[3], sizeof(a));
    }
    if (n < 0 || !memory_holds(x, (from_doubles ? 8 : 4) * (size_t)n) ||
        !memory_holds(y, (doubles ? 8 : 4) * (size_t)n)) {
        broken = ILLEGAL_ADDRESS;
        return broken;
    }
    compute(name, (const void *)(uintptr_t)x, (void *)(uintptr_t)y, n, a);
    return OK;
}

int node_run(const struct node *node)
{
    unsigned char *to = (unsigned char *)(uintptr_t)node->to;

    if (broken) {
        return broken;
    }
    switch (node->kind) {
    case NODE_KERNEL:
        return run_kernel(node);
    case NODE_HOST:
        node->call(node->context);
        return OK;
    case NODE_GRAPH:
        return graph_run(node->child);
    case NODE_EMPTY:
        return OK;
    case NODE_COPY:
    case NODE_FILL:
        break;
    }
    if (!memory_holds(node->to, node->bytes) ||
        (node->kind == NODE_COPY && !node->from_host && !memory_holds(node->from, node->bytes))) {
        return INVALID_VALUE;
    }
    if (node->kind == NODE_COPY) {
        memmove(to, (const void *)(uintptr_t)node->from, node->bytes);
    } else {
        memset(to, (int)node->fill, node->bytes); // values of one byte are all that is asked for
    }
    return OK;
}
