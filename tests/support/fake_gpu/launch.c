// Modules, functions and launches of libcuda.so.1.
#include "tests/support/fake_gpu/fake.h"
#include <stdlib.h>
#include <string.h>

#define INVALID_HANDLE 400

static struct cu_module *modules;

static bool has_kernel_of(const struct cu_module *module, const struct cu_module *other)
{
    for (size_t i = 0; i < other->function_count; i++) {
        for (size_t k = 0; k < module->function_count; k++) {
            if (strcmp(module->function[k].symbol, other->function[i].symbol) == 0) {
                return true;
            }
        }
    }
    return false;
}

CALL(cuModuleLoadData, cu_module *ret, const void *image)
{
    struct cu_module *module;
    cu_result result;

    NEED_CONTEXT;
    if (!(module = calloc(1, sizeof(*module)))) {
        return CU_OUT_OF_MEMORY;
    }
    if ((result = fake_image_read(module, image)) != CU_OK) {
        fake_module_clear(module);
        free(module);
        return result;
    }
    for (const struct cu_module *other = modules; other; other = other->next) {
        module->late = module->late || (fake.lazy && has_kernel_of(module, other));
    }
    module->next = modules;
    modules = module;
    *ret = module;
    return CU_OK;
}

static bool unload(cu_module module)
{
    for (struct cu_module **at = &modules; *at; at = &(*at)->next) {
        if (*at == module) {
            *at = module->next;
            fake_module_clear(module);
            free(module);
            return true;
        }
    }
    return false;
}

void fake_unload_all(void)
{
    while (modules) {
        (void)unload(modules);
    }
}

CALL(cuModuleUnload, cu_module module)
{
    NEED_CONTEXT;
    fake_wait();
    return unload(module) ? CU_OK : INVALID_HANDLE;
}

CALL(cuModuleGetFunction, cu_function *ret, cu_module module, const char *name)
{
    NEED_CONTEXT;
    for (size_t i = 0; i < module->function_count; i++) {
        if (strcmp(module->function[i].symbol, name) == 0) {
            *ret = &module->function[i];
            return CU_OK;
        }
    }
    return CU_NOT_FOUND;
}

CALL(cuModuleGetGlobal_v2, cu_pointer *ret, size_t *ret_size, cu_module module, const char *name)
{
    NEED_CONTEXT;
    for (size_t i = 0; i < module->global_count; i++) {
        if (strcmp(module->global[i].symbol, name) == 0) {
            *ret = module->global[i].at;
            *ret_size = module->global[i].size;
            return CU_OK;
        }
    }
    return CU_NOT_FOUND;
}

CALL(cuFuncGetAttribute, int *ret, int attribute, cu_function function)
{
    NEED_CONTEXT;
    switch (attribute) {
    case CU_FUNCTION_SHARED_BYTES:
        *ret = function->static_smem;
        return CU_OK;
    case CU_FUNCTION_REGISTERS:
        *ret = function->registers;
        return CU_OK;
    case CU_FUNCTION_MAX_DYNAMIC_SMEM:
        *ret = function->dynamic_smem_max;
        return CU_OK;
    case CU_FUNCTION_NON_PORTABLE_CLUSTER:
        *ret = function->non_portable_cluster;
        return CU_OK;
    default:
        *ret = 0;
        return attribute < 0 || attribute > 15 ? CU_INVALID_VALUE : CU_OK;
    }
}

CALL(cuFuncSetAttribute, cu_function function, int attribute, int value)
{
    NEED_CONTEXT;
    if (attribute == CU_FUNCTION_MAX_DYNAMIC_SMEM && value >= 0 &&
        value + function->static_smem <= FAKE_SMEM_OPTIN) {
        function->dynamic_smem_max = value;
    } else if (attribute == CU_FUNCTION_NON_PORTABLE_CLUSTER) {
        function->non_portable_cluster = value != 0;
    } else {
        return CU_INVALID_VALUE;
    }
    return CU_OK;
}

static int blocks_per_multiprocessor(cu_function function, int threads, size_t smem)
{
    int blocks = 2048 / threads, by_registers = 65536 / (function->registers * threads);
    int by_smem = (int)(FAKE_SMEM / (smem + (size_t)function->static_smem + 1024));

    blocks = blocks > 32 ? 32 : blocks;
    blocks = blocks > by_registers ? by_registers : blocks;
    return blocks > by_smem ? by_smem : blocks;
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *ret, cu_function function, int threads,
     size_t smem)
{
    NEED_CONTEXT;
    if (threads < 1 || threads > 1024) {
        return CU_INVALID_VALUE;
    }
    *ret = blocks_per_multiprocessor(function, threads, smem);
    return CU_OK;
}

static cu_result check_cluster(const struct cu_launch *launch, cu_function function,
                               const uint32_t cluster[3])
{
    uint64_t size = (uint64_t)cluster[0] * cluster[1] * cluster[2];

    for (int i = 0; i < 3; i++) {
        if (cluster[i] == 0 || launch->grid[i] % cluster[i] != 0) {
            return CU_INVALID_VALUE;
        }
    }
    return size > (function->non_portable_cluster ? 16 : 8) ? 912 : CU_OK;
}

static cu_result check_launch(const struct cu_launch *launch, cu_function function)
{
    const uint32_t *g = launch->grid, *b = launch->block;
    uint64_t threads = (uint64_t)b[0] * b[1] * b[2];

    if (g[0] == 0 || g[1] == 0 || g[2] == 0 || g[0] > 0x7fffffff || g[1] > 65535 || g[2] > 65535 ||
        b[0] > 1024 || b[1] > 1024 || b[2] > 64 || threads == 0 || threads > 1024 ||
        launch->smem > (uint32_t)function->dynamic_smem_max) {
        return CU_INVALID_VALUE;
    }
    int resident = blocks_per_multiprocessor(function, (int)threads, launch->smem);
    if (resident == 0) {
        return CU_LAUNCH_OUT_OF_RESOURCES;
    }
    for (uint32_t i = 0; i < launch->attribute_count; i++) {
        const struct cu_attribute *a = &launch->attribute[i];
        cu_result result = CU_OK;

        if (a->id == CU_LAUNCH_CLUSTER) {
            result = check_cluster(launch, function, a->value.cluster);
        } else if (a->id == CU_LAUNCH_COOPERATIVE && a->value.flag != 0 &&
                   (uint64_t)g[0] * g[1] * g[2] > (uint64_t)resident * FAKE_MULTIPROCESSORS) {
            result = CU_COOPERATIVE_TOO_LARGE;
        }
        if (result != CU_OK) {
            return result;
        }
    }
    return CU_OK;
}

static cu_result launch_again(const struct fake_work *work)
{
    void *unpacked[FAKE_PARAMETER_MAX];

    return !fake_unpack(work->function, work->packed, work->packed_bytes, unpacked)
               ? CU_INVALID_VALUE
           : !fake_enter(work->stream) ? CU_OK
                                       : fake_run(work->function, &work->launch, unpacked);
}

// Keeps a launch whose parameters are in one piece, with a copy of them, when a capture goes on.
static bool keep(const struct cu_launch *launch, cu_function function, void **extra, cu_result *ret)
{
    struct fake_work work = {.act = launch_again,
                             .function = function,
                             .launch = *launch,
                             .stream = launch->stream,
                             .packed_bytes = extra ? *(size_t *)extra[3] : 0};

    work.packed = malloc(work.packed_bytes + 1);
    if (work.packed && extra) {
        memcpy(work.packed, extra[1], work.packed_bytes);
    }
    bool kept = fake_keep(&work, ret);
    if (!kept || *ret != CU_OK) {
        free(work.packed);
    }
    return kept;
}

CALL(cuLaunchKernelEx, const struct cu_launch *launch, cu_function function, void **parameters,
     void **extra)
{
    void *unpacked[FAKE_PARAMETER_MAX];
    cu_result result;

    NEED_CONTEXT;
    if (extra) {
        if (parameters || extra[0] != CU_PARAMETER_POINTER || extra[2] != CU_PARAMETER_SIZE ||
            extra[4] != CU_PARAMETER_END ||
            !fake_unpack(function, extra[1], *(size_t *)extra[3], unpacked)) {
            return CU_INVALID_VALUE;
        }
        parameters = unpacked;
    }
    if ((result = check_launch(launch, function)) != CU_OK ||
        keep(launch, function, extra, &result) || !fake_enter(launch->stream)) {
        return result;
    }
    return fake_run(function, launch, parameters);
}

CALL(cuOccupancyMaxActiveClusters, int *ret, cu_function function, const struct cu_launch *launch)
{
    uint32_t size = 1;

    NEED_CONTEXT;
    for (uint32_t i = 0; i < launch->attribute_count; i++) {
        const struct cu_attribute *a = &launch->attribute[i];

        if (a->id == CU_LAUNCH_CLUSTER) {
            cu_result result = check_cluster(launch, function, a->value.cluster);
            if (result != CU_OK) {
                return result;
            }
            size = a->value.cluster[0] * a->value.cluster[1] * a->value.cluster[2];
        }
    }
    *ret = (int)(FAKE_MULTIPROCESSORS / size);
    return CU_OK;
}
