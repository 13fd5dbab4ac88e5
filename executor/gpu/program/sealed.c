// Design note. The launches of a sealed source. An object has a variant for each set of values of
// the specialised parameters, and a case uses the variant that has its values.
#include "common/mem.h"
#include "executor/gpu/program/arguments.h"
#include "executor/gpu/program/inside.h"
#include <string.h>

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

static int choose_variant(struct program *program, const struct shape_case *shape,
                          size_t *ret_variant, struct err *err)
{
    for (size_t i = 0; i < program->object.variants_count; i++) {
        const struct cuda_variant *variant = &program->object.variants[i];

        if (variant_fits(program, variant, shape)) {
            *ret_variant = i;
            return program_load(program, i, variant->cubin.data, variant->globals,
                                variant->globals_count, err);
        }
    }
    return err_set(err, ERR_INTERNAL, "the object was not compiled for this case");
}

static const struct cuda_kernel *find_kernel(const struct cuda_variant *variant, const char *name)
{
    for (size_t i = 0; i < variant->kernels_count; i++) {
        if (strcmp(variant->kernels[i].name, name) == 0) {
            return &variant->kernels[i];
        }
    }
    return NULL;
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
    *out = (struct program_launch){.work = WORK_KERNEL, .name = launch->kernel};
    program->launch_count++;
    memcpy(out->config.grid, form.grid, sizeof(form.grid));
    memcpy(out->config.block, form.block, sizeof(form.block));
    out->config.smem = form.smem;
    program_add_attributes(out, form.cluster, launch->cooperative, launch->pdl);
    rc = program_find_kernel(program, variant, kernel->symbol, out, err);
    return rc == 0 ? program_arguments(program, kernel, launch, out, shape, tensors, err) : rc;
}

static int place_scratch(struct program *program, const struct shape_case *shape, struct err *err)
{
    for (size_t i = 0; i < program->manifest->scratch_count; i++) {
        const struct manifest_scratch *scratch = &program->manifest->scratch[i];
        int64_t bytes = 0;
        int rc =
            manifest_eval(program->manifest, scratch->bytes, shape, program->problem, &bytes, err);

        if (rc != 0 || bytes < 1 || (uint64_t)bytes > MANIFEST_SCRATCH_BYTES_MAX) {
            (void)err_set(err, ERR_LIMIT, "scratch %s: %lld bytes are not between 1 and %llu",
                          scratch->name, (long long)bytes,
                          (unsigned long long)MANIFEST_SCRATCH_BYTES_MAX);
            return PROGRAM_UNFIT;
        }
        rc = guarded_buffer_place(&program->scratch[i], &program->gpu->open, (size_t)bytes, err);
        if (rc != 0) {
            return rc == ERR_LIMIT ? PROGRAM_UNFIT : rc;
        }
        program->area[program->area_count++] =
            (struct program_area){.at = program->scratch[i].tensor,
                                  .bytes = program->scratch[i].bytes,
                                  .fill = scratch->zero ? FILL_ZERO : FILL_PATTERN};
    }
    return 0;
}

_Static_assert(MANIFEST_SCRATCH_MAX <= PROGRAM_AREAS_MAX, "there is an area for all scratch");

int program_prepare_sealed(struct program *program, const struct shape_case *shape,
                           const struct program_tensors *tensors, struct err *err)
{
    size_t variant = 0;
    int rc = choose_variant(program, shape, &variant, err);

    if (rc != 0) {
        return rc;
    }
    rc = place_scratch(program, shape, err);
    program->launch = xcalloc(program->manifest->launch_count + 1, sizeof(*program->launch));
    for (size_t i = 0; i < program->manifest->launch_count && rc == 0; i++) {
        rc = prepare_launch(program, variant, i, shape, tensors, err);
    }
    return rc;
}
