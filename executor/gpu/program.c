// Design note. An object has a variant for each set of values of the specialised parameters. A case
// uses the variant that has its values; the variant's module is loaded when a case first needs it.
// On real hardware device variables keep their values between launches. Here they get the values
// from when the module was loaded after every launch, so a candidate cannot remember anything in
// them. The copies of these values lie where the candidate cannot reach while it runs.
#include "executor/gpu/program.h"
#include "common/mem.h"
#include "executor/gpu/program_arguments.h"
#include <stdlib.h>
#include <string.h>

#define SMEM_WITHOUT_ASKING 48 * 1024 // bytes of shared memory that any launch may have
#define CLUSTER_PORTABLE 8            // blocks of a cluster that every GPU with clusters supports
#define GLOBAL_GAP 16 // bytes that alignment may leave between two variables of a module

// ---- begin and end ----

int program_create(struct program **ret, struct gpu *gpu, const struct problem *problem,
                   enum manifest_role role, const struct bytes *object, struct err *err)
{
    struct program *program = xcalloc(1, sizeof(*program));

    program->gpu = gpu;
    program->problem = problem;
    program->role = role;
    int rc = message_read(&cuda_object_message, &program->object, object->data, object->len, err);
    if (rc == 0) {
        program->module = xcalloc(program->object.variants_count + 1, sizeof(*program->module));
        rc = manifest_parse(&program->manifest, (const char *)program->object.source.data,
                            program->object.source.len, "source", problem, role, err);
    }
    if (rc != 0) {
        program_free(program);
        return rc;
    }
    *ret = program;
    return 0;
}

static void forget_launches(struct program *program)
{
    for (size_t i = 0; i < program->launch_count; i++) {
        free(program->launch[i].value);
    }
    program->launch_count = 0;
    program->local_bytes = 0;
}

static void module_unload(struct program *program, struct program_module *module)
{
    free(module->global);
    if (module->module && !program->gpu->hung) {
        (void)program->gpu->driver.module_unload(module->module);
    }
}

void program_free(struct program *program)
{
    if (!program) {
        return;
    }
    forget_launches(program);
    for (size_t i = 0; program->module && i < program->object.variants_count; i++) {
        module_unload(program, &program->module[i]);
    }
    free(program->module);
    manifest_free(program->manifest);
    message_clear(&cuda_object_message, &program->object);
    free(program);
}

// ---- modules ----

static bool variant_fits(const struct program *program, const struct cuda_variant *variant,
                         const struct shape_case *shape)
{
    size_t at = 0;

    for (size_t i = 0; i < program->problem->param_count; i++) {
        if (program->manifest->specialized[i] &&
            (at >= variant->values_count || (int64_t)variant->values[at++] != shape->i[i])) {
            return false;
        }
    }
    return true;
}

static int by_address(const void *a, const void *b)
{
    cu_pointer x = ((const struct program_global *)a)->at,
               y = ((const struct program_global *)b)->at;

    return (x > y) - (x < y);
}

// Joins variables that lie side by side into one range. A source that includes much of a library
// has hundreds of small variables.
static void merge_globals(struct program_module *module)
{
    qsort(module->global, module->global_count, sizeof(*module->global), by_address);
    size_t count = 0;
    for (size_t i = 0; i < module->global_count; i++) {
        const struct program_global next = module->global[i];
        struct program_global *last = count > 0 ? &module->global[count - 1] : NULL;

        if (last && next.at <= last->at + last->size + GLOBAL_GAP) {
            cu_pointer end = next.at + next.size;

            last->size = end > last->at + last->size ? end - last->at : last->size;
        } else {
            module->global[count++] = next;
        }
    }
    module->global_count = count;
}

// Queues a copy by a kernel of the executor, because a range may hold several variables and the
// driver copies only within one.
static int copy_range(struct gpu *gpu, cu_pointer to, cu_pointer from, uint64_t bytes,
                      struct err *err)
{
    return gpu_run(gpu, GPU_COPY, bytes, (void *[]){&to, &from, &bytes}, err);
}

// Copies the values that the variables have now, right after loading.
static int keep_globals(struct program *program, struct program_module *module, struct err *err)
{
    struct gpu *gpu = program->gpu;
    int rc = 0;

    for (size_t i = 0; i < module->global_count && rc == 0; i++) {
        struct program_global *global = &module->global[i];

        rc = arena_place(&gpu->judge, global->size, &global->pristine, err);
        if (rc == 0) {
            rc = copy_range(gpu, global->pristine, global->at, global->size, err);
        }
    }
    return rc;
}

static int load_globals(struct program *program, const struct cuda_variant *variant,
                        struct program_module *module, struct err *err)
{
    struct gpu *gpu = program->gpu;

    module->global = xcalloc(variant->globals_count + 1, sizeof(*module->global));
    for (size_t i = 0; i < variant->globals_count; i++) {
        struct program_global *global = &module->global[module->global_count];
        cu_result result = gpu->driver.module_global(&global->at, &global->size, module->module,
                                                     variant->globals[i].symbol);

        if (result == CU_NOT_FOUND || (result == CU_OK && global->size == 0)) {
            continue; // the compiler has left out the variable
        }
        if (result != CU_OK) {
            return gpu_check(gpu, result, "finding a device variable", err);
        }
        module->global_count++;
    }
    merge_globals(module);
    return keep_globals(program, module, err);
}

static int choose_variant(struct program *program, const struct shape_case *shape,
                          size_t *ret_variant, struct err *err)
{
    for (size_t i = 0; i < program->object.variants_count; i++) {
        const struct cuda_variant *variant = &program->object.variants[i];
        struct program_module *module = &program->module[i];

        if (!variant_fits(program, variant, shape)) {
            continue;
        }
        *ret_variant = i;
        if (module->module) {
            return 0;
        }
        cu_result result = program->gpu->driver.module_load(&module->module, variant->cubin.data);
        if (result != CU_OK) {
            module->module = NULL;
            if (gpu_check(program->gpu, result, "the module cannot be loaded", err) != 0) {
                return program->gpu->broken ? (int)err->code : PROGRAM_UNFIT;
            }
        }
        int rc = load_globals(program, variant, module, err);
        return rc == ERR_LIMIT ? PROGRAM_UNFIT : rc;
    }
    return err_set(err, ERR_INTERNAL, "the object was not compiled for this case");
}

// ---- one launch ----

static const struct cuda_kernel *find_kernel(const struct cuda_variant *variant, const char *name)
{
    for (size_t i = 0; i < variant->kernels_count; i++) {
        if (strcmp(variant->kernels[i].name, name) == 0) {
            return &variant->kernels[i];
        }
    }
    return NULL;
}

static void add_attributes(const struct manifest_launch *launch, const struct manifest_shape *shape,
                           struct program_launch *out)
{
    struct cu_launch *config = &out->config;

    if (shape->cluster[0] > 0) {
        struct cu_attribute *attribute = &out->attribute[config->attribute_count++];

        *attribute = (struct cu_attribute){.id = CU_LAUNCH_CLUSTER};
        memcpy(attribute->value.cluster, shape->cluster, sizeof(shape->cluster));
    }
    if (launch->cooperative) {
        out->attribute[config->attribute_count++] =
            (struct cu_attribute){.id = CU_LAUNCH_COOPERATIVE, .value.flag = 1};
    }
    if (launch->pdl) {
        out->attribute[config->attribute_count++] =
            (struct cu_attribute){.id = CU_LAUNCH_PDL, .value.flag = 1};
    }
    config->attribute = out->attribute;
}

// Sets the attributes without which the driver would refuse the launch.
static int allow(struct program *program, struct program_launch *out, const char *kernel,
                 struct err *err)
{
    struct gpu *gpu = program->gpu;
    const uint32_t *cluster = out->attribute[0].value.cluster;
    cu_result result = CU_OK;

    if (out->config.smem > SMEM_WITHOUT_ASKING) {
        result = gpu->driver.function_set(out->function, CU_FUNCTION_MAX_DYNAMIC_SMEM,
                                          (int)out->config.smem);
        if (result != CU_OK) {
            (void)err_set(err, ERR_LIMIT,
                          "%s asks for %u bytes of shared memory; a block has at most %zu here",
                          kernel, out->config.smem, gpu->smem_optin);
            return PROGRAM_UNFIT;
        }
    }
    if (out->config.attribute_count > 0 && out->attribute[0].id == CU_LAUNCH_CLUSTER &&
        cluster[0] * cluster[1] * cluster[2] > CLUSTER_PORTABLE) {
        (void)gpu->driver.function_set(out->function, CU_FUNCTION_NON_PORTABLE_CLUSTER, 1);
    }
    return 0;
}

static int prepare_launch(struct program *program, size_t variant, size_t index,
                          const struct shape_case *shape, const struct program_tensors *tensors,
                          struct err *err)
{
    const struct manifest_launch *launch = &program->manifest->launch[index];
    const struct cuda_kernel *kernel =
        find_kernel(&program->object.variants[variant], launch->kernel);
    struct program_launch *out = &program->launch[program->launch_count];
    struct manifest_shape form;
    int rc = manifest_launch_shape(program->manifest, index, shape, program->problem, &form, err);

    if (rc != 0) {
        return PROGRAM_UNFIT;
    }
    if (form.skipped) {
        return 0;
    }
    if (!kernel) {
        (void)err_set(err, ERR_INVALID, "the object has no kernel %s", launch->kernel);
        return PROGRAM_UNFIT;
    }
    *out = (struct program_launch){.kernel = launch->kernel};
    program->launch_count++;
    rc = gpu_check(program->gpu,
                   program->gpu->driver.module_function(
                       &out->function, program->module[variant].module, kernel->symbol),
                   launch->kernel, err);
    if (rc != 0) {
        return rc;
    }
    memcpy(out->config.grid, form.grid, sizeof(form.grid));
    memcpy(out->config.block, form.block, sizeof(form.block));
    int local = 0;
    rc =
        gpu_check(program->gpu,
                  program->gpu->driver.function_get(&local, CU_FUNCTION_LOCAL_BYTES, out->function),
                  launch->kernel, err);
    if (rc != 0) {
        return rc;
    }
    if (local > 0 && (size_t)local > program->local_bytes) {
        program->local_bytes = (size_t)local;
    }
    out->config.smem = form.smem;
    out->config.stream = program->gpu->stream;
    add_attributes(launch, &form, out);
    rc = allow(program, out, launch->kernel, err);
    return rc == 0 ? program_arguments(program, kernel, launch, out, shape, tensors, err) : rc;
}

static int place_scratch(struct program *program, const struct shape_case *shape, struct err *err)
{
    for (size_t i = 0; i < program->manifest->scratch_count; i++) {
        int64_t bytes = 0;
        int rc = manifest_eval(program->manifest, program->manifest->scratch[i].bytes, shape,
                               program->problem, &bytes, err);

        if (rc != 0 || bytes < 1 || (uint64_t)bytes > MANIFEST_SCRATCH_BYTES_MAX) {
            (void)err_set(err, ERR_LIMIT, "scratch %s: %lld bytes are not between 1 and %llu",
                          program->manifest->scratch[i].name, (long long)bytes,
                          (unsigned long long)MANIFEST_SCRATCH_BYTES_MAX);
            return PROGRAM_UNFIT;
        }
        rc = guarded_buffer_place_in(&program->scratch[i], &program->gpu->open, (size_t)bytes, err);
        if (rc != 0) {
            return rc == ERR_LIMIT ? PROGRAM_UNFIT : rc;
        }
    }
    return 0;
}

int program_prepare(struct program *program, const struct shape_case *shape,
                    const struct program_tensors *tensors, struct err *err)
{
    forget_launches(program);
    size_t variant = 0;
    int rc = choose_variant(program, shape, &variant, err);
    if (rc != 0) {
        return rc;
    }
    rc = place_scratch(program, shape, err);
    for (size_t i = 0; i < program->manifest->launch_count && rc == 0; i++) {
        rc = prepare_launch(program, variant, i, shape, tensors, err);
    }
    return rc;
}

// ---- a run ----

bool program_scratch(const struct program *program, bool guards, struct gpu_zones *zones)
{
    for (size_t i = 0; i < program->manifest->scratch_count; i++) {
        const struct guarded_buffer *buffer = &program->scratch[i];

        if (guards ? !guarded_buffer_guards(buffer, zones)
                   : !gpu_zones_add(zones, buffer->tensor, buffer->bytes)) {
            return false;
        }
    }
    return true;
}

int program_clear(struct program *program, struct err *err)
{
    struct gpu *gpu = program->gpu;
    int rc = 0;

    for (size_t i = 0; i < program->manifest->scratch_count && rc == 0; i++) {
        const struct guarded_buffer *buffer = &program->scratch[i];

        if (program->manifest->scratch[i].zero) {
            rc =
                gpu_check(gpu, gpu->driver.set_bytes(buffer->tensor, 0, buffer->bytes, gpu->stream),
                          "clearing scratch memory", err);
        }
    }
    return rc;
}

int program_restore(struct program *program, struct err *err)
{
    int rc = 0;

    for (size_t m = 0; m < program->object.variants_count; m++) {
        const struct program_module *module = &program->module[m];

        for (size_t i = 0; i < module->global_count && rc == 0; i++) {
            const struct program_global *global = &module->global[i];

            rc = copy_range(program->gpu, global->at, global->pristine, global->size, err);
        }
    }
    return rc;
}

int program_run(struct program *program, struct err *err)
{
    for (size_t i = 0; i < program->launch_count; i++) {
        struct program_launch *launch = &program->launch[i];
        cu_result result =
            program->gpu->driver.launch(&launch->config, launch->function, launch->parameter, NULL);

        if (result != CU_OK) {
            int rc = gpu_check(program->gpu, result, "it cannot be launched", err);

            (void)err_wrap(err, "%s", launch->kernel);
            return program->gpu->broken ? rc : PROGRAM_UNFIT;
        }
    }
    return 0;
}
