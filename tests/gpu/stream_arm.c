#include "tests/gpu/stream_arm.h"
#include "common/mem.h"

#include <stdlib.h>
#include <string.h>

#define SMEM_WITHOUT_ASKING (48 * 1024) // bytes of shared memory that any launch may have
#define CLUSTER_PORTABLE 8              // blocks of a cluster that need no attribute

// What the launches of one case are made from.
struct setting {
    struct stream_device *device;
    const struct problem *problem;
    const struct shape_case *shape;
    const cu_pointer *tensor;
};

static int set_argument(const struct stream_arm *arm, const struct setting *setting,
                        const struct manifest_arg *arg, uint64_t bytes, uint64_t *ret,
                        struct err *err)
{
    int64_t integer = 0;
    int rc = 0;

    switch (arg->kind) {
    case ARG_TENSOR:
        *ret = setting->tensor[arg->index];
        break;
    case ARG_SCRATCH:
        *ret = arm->scratch[arg->index];
        break;
    case ARG_INTEGER: // little-endian: the lowest bytes come first
        rc = manifest_eval(arm->code->manifest, arg->expr, setting->shape, setting->problem,
                           &integer, err);
        *ret = (uint64_t)integer;
        break;
    case ARG_SCALAR:
        if (bytes == sizeof(float)) {
            float narrow = (float)setting->shape->f[arg->index];
            memcpy(ret, &narrow, sizeof(narrow));
        } else {
            memcpy(ret, &setting->shape->f[arg->index], sizeof(double));
        }
        break;
    default: // stream_code_compile has refused tensor maps; the others are a reference's
        rc = err_set(err, ERR_UNSUPPORTED, "an argument that no candidate has");
        break;
    }
    return rc;
}

static int set_arguments(const struct stream_arm *arm, const struct setting *setting,
                         const struct manifest_launch *line, const struct cuda_kernel *kernel,
                         struct stream_launch *out, struct err *err)
{
    int rc = 0;

    if (kernel->sizes_count != line->arg_count) {
        return err_set(err, ERR_INVALID, "it has %zu parameters and its launch line %zu arguments",
                       kernel->sizes_count, line->arg_count);
    }
    for (size_t i = 0; i < line->arg_count && rc == 0; i++) {
        if (kernel->sizes[i] != 4 && kernel->sizes[i] != 8) {
            return err_set(err, ERR_INVALID, "parameter %zu has %llu bytes and not 4 or 8", i + 1,
                           (unsigned long long)kernel->sizes[i]);
        }
        rc = set_argument(arm, setting, &line->arg[i], kernel->sizes[i], &out->value[i], err);
        out->parameter[i] = &out->value[i];
    }
    return rc;
}

static void add_attributes(const struct manifest_launch *line, const struct manifest_shape *shape,
                           struct stream_launch *out)
{
    struct cu_launch *config = &out->config;

    if (shape->cluster[0] > 0) {
        struct cu_attribute *cluster = &out->attribute[config->attribute_count++];
        cluster->id = CU_LAUNCH_CLUSTER;
        memcpy(cluster->value.cluster, shape->cluster, sizeof(shape->cluster));
    }
    if (line->cooperative) {
        out->attribute[config->attribute_count++] =
            (struct cu_attribute){.id = CU_LAUNCH_COOPERATIVE, .value.flag = 1};
    }
    if (line->pdl) {
        out->attribute[config->attribute_count++] =
            (struct cu_attribute){.id = CU_LAUNCH_PDL, .value.flag = 1};
    }
    config->attribute = out->attribute;
}

// Sets what the driver wants to be told before such a launch.
static int allow(const struct setting *setting, const struct manifest_shape *shape,
                 const struct stream_launch *launch, struct err *err)
{
    const struct driver *d = &setting->device->driver;
    const uint32_t *cluster = shape->cluster;
    int rc = 0;

    if (shape->smem > SMEM_WITHOUT_ASKING) {
        rc = driver_check(
            d, d->function_set(launch->function, CU_FUNCTION_MAX_DYNAMIC_SMEM, (int)shape->smem),
            "asking for shared memory", err);
    }
    if (rc == 0 && cluster[0] * cluster[1] * cluster[2] > CLUSTER_PORTABLE) {
        rc = driver_check(d, d->function_set(launch->function, CU_FUNCTION_NON_PORTABLE_CLUSTER, 1),
                          "asking for a large cluster", err);
    }
    return rc;
}

static int add_launch(struct stream_arm *arm, const struct setting *setting, size_t index,
                      struct err *err)
{
    const struct manifest_launch *line = &arm->code->manifest->launch[index];
    const struct cuda_kernel *kernel = stream_code_kernel(arm->code, line->kernel);
    const struct driver *d = &setting->device->driver;
    struct stream_launch *out = &arm->launch[arm->launch_count];
    struct manifest_shape shape;
    int rc = manifest_launch_shape(arm->code->manifest, index, setting->shape, setting->problem,
                                   &shape, err);

    if (rc != 0 || shape.skipped) {
        return rc;
    }
    if (!kernel) {
        return err_set(err, ERR_NOT_FOUND, "%s is not in the compiled code", line->kernel);
    }
    rc = driver_check(d, d->module_function(&out->function, arm->module, kernel->symbol),
                      "finding it in the module", err);
    if (rc == 0) {
        memcpy(out->config.grid, shape.grid, sizeof(shape.grid));
        memcpy(out->config.block, shape.block, sizeof(shape.block));
        out->config.smem = shape.smem;
        out->config.stream = setting->device->stream;
        add_attributes(line, &shape, out);
        rc = allow(setting, &shape, out, err);
    }
    if (rc == 0) {
        rc = set_arguments(arm, setting, line, kernel, out, err);
    }
    arm->launch_count++;
    return rc == 0 ? 0 : err_wrap(err, "kernel %s", line->kernel);
}

static int place_scratch(struct stream_arm *arm, const struct setting *setting, struct err *err)
{
    const struct manifest *manifest = arm->code->manifest;
    const struct driver *d = &setting->device->driver;
    int rc = 0;

    for (size_t i = 0; i < manifest->scratch_count && rc == 0; i++) {
        int64_t bytes = 0;
        rc = manifest_eval(manifest, manifest->scratch[i].bytes, setting->shape, setting->problem,
                           &bytes, err);
        if (rc == 0) {
            arm->scratch_bytes[i] = (size_t)bytes;
            rc = driver_check(d, d->allocate(&arm->scratch[i], (size_t)bytes), "scratch memory",
                              err);
        }
    }
    return rc;
}

int stream_arm_open(struct stream_arm *ret, struct stream_device *device,
                    const struct stream_code *code, const struct problem *problem,
                    const struct shape_case *shape, const cu_pointer *tensor, struct err *err)
{
    const struct setting setting = {
        .device = device, .problem = problem, .shape = shape, .tensor = tensor};
    const struct driver *d = &device->driver;

    *ret = (struct stream_arm){.code = code};
    ret->launch = xcalloc(code->manifest->launch_count, sizeof(*ret->launch));
    int rc =
        driver_check(d, d->module_load(&ret->module, code->cubin.data), "loading its code", err);
    if (rc != 0) {
        ret->module = NULL;
        return rc;
    }
    rc = place_scratch(ret, &setting, err);
    for (size_t i = 0; i < code->manifest->launch_count && rc == 0; i++) {
        rc = add_launch(ret, &setting, i, err);
    }
    return rc;
}

void stream_arm_release(struct stream_arm *arm, struct stream_device *device)
{
    for (size_t i = 0; i < MANIFEST_SCRATCH_MAX; i++) {
        if (arm->scratch[i]) {
            (void)device->driver.release(arm->scratch[i]);
        }
    }
    if (arm->module) {
        (void)device->driver.module_unload(arm->module);
    }
    free(arm->launch);
    *arm = (struct stream_arm){.code = NULL};
}

int stream_arm_clear(const struct stream_arm *arm, struct stream_device *device, struct err *err)
{
    const struct driver *d = &device->driver;
    int rc = 0;

    for (size_t i = 0; i < arm->code->manifest->scratch_count && rc == 0; i++) {
        if (arm->code->manifest->scratch[i].zero) {
            rc = driver_check(
                d, d->set_bytes(arm->scratch[i], 0, arm->scratch_bytes[i], device->stream),
                "clearing scratch memory", err);
        }
    }
    return rc;
}

int stream_arm_launch(const struct stream_arm *arm, struct stream_device *device, struct err *err)
{
    const struct driver *d = &device->driver;
    int rc = 0;

    for (size_t i = 0; i < arm->launch_count && rc == 0; i++) {
        const struct stream_launch *launch = &arm->launch[i];
        rc = driver_check(d,
                          d->launch(&launch->config, launch->function,
                                    (void **)(uintptr_t)launch->parameter, NULL),
                          "launching a kernel", err);
    }
    return rc;
}
