// Design note. Images are loaded when a case first needs them. On real hardware device variables
// keep their values between launches. Here they get the values from when the module was loaded
// after every launch, so a candidate cannot remember anything in them. The copies of these values
// lie where the candidate cannot reach while it runs.
#include "executor/gpu/program/program.h"
#include "common/mem.h"
#include "executor/gpu/program/inside.h"
#include "executor/gpu/program/recording.h"
#include <stdlib.h>
#include <string.h>

#define SMEM_WITHOUT_ASKING 48 * 1024 // bytes of shared memory that any launch may have
#define CLUSTER_PORTABLE 8            // blocks of a cluster that every GPU with clusters supports
#define GLOBAL_GAP 16 // bytes that alignment may leave between two variables of a module

// ---- begin and end ----

// Reserves the addresses of a recording. They are in it, so no others will do.
static int open_memory(struct program *program, struct arena *memory, struct err *err)
{
    struct cuda_recording *recording = program->object.recording;
    struct gpu *gpu = program->gpu;
    int rc = recording_unpack_images(recording, err);

    rc = rc == 0 ? recording_check(recording, program->problem, program->role, err) : rc;
    if (rc != 0) {
        return rc;
    }
    if (!memory) {
        return err_set(err, ERR_UNSUPPORTED, "a recording cannot be run here");
    }
    if (!memory->driver) {
        rc = arena_open(memory, &gpu->driver, gpu->device, recording->base, gpu->memory_bytes, err);
        if (rc != 0) {
            return rc;
        }
    }
    if (memory->base != recording->base) {
        return err_set(err, ERR_SYSTEM,
                       "the addresses of the recording, from %llx on, are not free in this process",
                       (unsigned long long)recording->base);
    }
    program->memory = memory;
    program->content = xcalloc(recording->contents_count + 1, sizeof(*program->content));
    return 0;
}

int program_create(struct program **ret, struct gpu *gpu, const struct problem *problem,
                   enum manifest_role role, const struct bytes *object, struct arena *memory,
                   struct err *err)
{
    struct program *program = xcalloc(1, sizeof(*program));

    program->gpu = gpu;
    program->problem = problem;
    program->role = role;
    int rc = message_read(&cuda_object_message, &program->object, object->data, object->len, err);
    if (rc != 0) {
        goto out;
    }
    const struct cuda_recording *recording = program->object.recording;
    program->module_count = recording ? recording->images_count : program->object.variants_count;
    program->module = xcalloc(program->module_count + 1, sizeof(*program->module));
    if (program->object.unsealed && !recording && program->module_count == 0) {
        goto out; // it launches nothing here
    }
    rc = recording ? open_memory(program, memory, err)
                   : manifest_parse(&program->manifest, (const char *)program->object.source.data,
                                    program->object.source.len, "source", problem, role, err);
out:
    if (rc != 0) {
        program_free(program);
        return rc;
    }
    *ret = program;
    return 0;
}

static void forget_launches(struct program *program)
{
    program_forget_graph(program);
    program_forget_events(program);
    stream_plan_release(&program->plan);
    for (size_t i = 0; i < program->launch_count; i++) {
        free(program->launch[i].value);
    }
    free(program->launch);
    program->launch = NULL;
    program->launch_count = 0;
    program->area_count = 0;
    program->local_bytes = 0;
    memset(program->result, 0, sizeof(program->result));
    memset(program->scale, 0, sizeof(program->scale));
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
    for (size_t i = 0; i < program->module_count; i++) {
        module_unload(program, &program->module[i]);
    }
    free(program->module);
    free(program->content);
    manifest_free(program->manifest);
    message_clear(&cuda_object_message, &program->object);
    free(program);
}

// ---- modules ----

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

int program_copy_range(struct gpu *gpu, cu_pointer to, cu_pointer from, uint64_t bytes,
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
            rc = program_copy_range(gpu, global->pristine, global->at, global->size, err);
        }
    }
    return rc;
}

bool program_uses_judge(const struct program *program)
{
    bool uses = program->memory;

    for (size_t v = 0; v < program->object.variants_count; v++) {
        uses = uses || program->object.variants[v].globals_count > 0;
    }
    return uses;
}

static int load_globals(struct program *program, struct program_module *module,
                        const struct cuda_global *named, size_t count, struct err *err)
{
    struct gpu *gpu = program->gpu;

    module->global = xcalloc(count + 1, sizeof(*module->global));
    for (size_t i = 0; i < count; i++) {
        struct program_global *global = &module->global[module->global_count];
        cu_result result =
            gpu->driver.module_global(&global->at, &global->size, module->module, named[i].symbol);

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

int program_load(struct program *program, size_t index, const void *image,
                 const struct cuda_global *global, size_t global_count, struct err *err)
{
    struct program_module *module = &program->module[index];

    if (module->module) {
        return 0;
    }
    cu_result result = program->gpu->driver.module_load(&module->module, image);
    if (result != CU_OK) {
        module->module = NULL;
        if (gpu_check(program->gpu, result, "the module cannot be loaded", err) != 0) {
            return program->gpu->broken ? (int)err->code : PROGRAM_UNFIT;
        }
    }
    int rc = load_globals(program, module, global, global_count, err);
    return rc == ERR_LIMIT ? PROGRAM_UNFIT : rc;
}

// ---- kernels ----

void program_add_attributes(struct program_launch *out, const uint32_t cluster[3], bool cooperative,
                            bool pdl)
{
    struct cu_launch *config = &out->config;

    if (cluster[0] > 0) {
        struct cu_attribute *attribute = &out->attribute[config->attribute_count++];

        *attribute = (struct cu_attribute){.id = CU_LAUNCH_CLUSTER};
        memcpy(attribute->value.cluster, cluster, 3 * sizeof(*cluster));
    }
    if (cooperative) {
        out->attribute[config->attribute_count++] =
            (struct cu_attribute){.id = CU_LAUNCH_COOPERATIVE, .value.flag = 1};
    }
    if (pdl) {
        out->attribute[config->attribute_count++] =
            (struct cu_attribute){.id = CU_LAUNCH_PDL, .value.flag = 1};
    }
    config->attribute = out->attribute;
}

// Sets the attributes without which the driver would refuse the launch.
static int allow(struct program *program, struct program_launch *out, struct err *err)
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
                          out->name, out->config.smem, gpu->smem_optin);
            return PROGRAM_UNFIT;
        }
    }
    if (out->config.attribute_count > 0 && out->attribute[0].id == CU_LAUNCH_CLUSTER &&
        cluster[0] * cluster[1] * cluster[2] > CLUSTER_PORTABLE) {
        (void)gpu->driver.function_set(out->function, CU_FUNCTION_NON_PORTABLE_CLUSTER, 1);
    }
    return 0;
}

int program_find_kernel(struct program *program, size_t module, const char *symbol,
                        struct program_launch *out, struct err *err)
{
    struct driver *d = &program->gpu->driver;
    cu_result result = d->module_function(&out->function, program->module[module].module, symbol);

    if (result == CU_NOT_FOUND) {
        (void)err_set(err, ERR_INVALID, "the object has no kernel %s", out->name);
        return PROGRAM_UNFIT;
    }
    int rc = gpu_check(program->gpu, result, out->name, err);
    if (rc != 0) {
        return rc;
    }
    int local = 0;
    rc = gpu_check(program->gpu, d->function_get(&local, CU_FUNCTION_LOCAL_BYTES, out->function),
                   out->name, err);
    if (rc != 0) {
        return rc;
    }
    if (local > 0 && (size_t)local > program->local_bytes) {
        program->local_bytes = (size_t)local;
    }
    out->config.stream = program->gpu->stream;
    return allow(program, out, err);
}

int program_prepare(struct program *program, const struct shape_case *shape,
                    const struct program_tensors *tensors, struct err *err)
{
    forget_launches(program);
    if (!program->memory && !program->manifest) {
        return 0;
    }
    return program->memory ? program_prepare_recorded(program, shape, tensors, err)
                           : program_prepare_sealed(program, shape, tensors, err);
}
