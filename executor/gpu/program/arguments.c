// Design note. Arguments are laid out one after the other, each aligned to its size. What the
// manifest names is converted to the size that the kernel's parameter has: an integer or a number
// may have 4 or 8 bytes, a pointer has 8, a tensor map 128.
#include "executor/gpu/program/arguments.h"
#include <stdlib.h>
#include <string.h>

#define TENSORMAP_BYTES 128

// Returns the offset of the next value of this many bytes, and counts it as used.
static size_t place_of(size_t *used, size_t bytes)
{
    size_t at = (*used + bytes - 1) / bytes * bytes;

    *used = at + bytes;
    return at;
}

static int put_integer(unsigned char *to, uint64_t size, int64_t value, const char *kernel,
                       size_t index, struct err *err)
{
    int32_t narrow = (int32_t)value;

    if (size == 8) {
        memcpy(to, &value, 8);
        return 0;
    }
    if (size != 4 || narrow != value) {
        (void)err_set(err, ERR_INVALID,
                      "%s: argument %zu is %lld, which its %llu bytes cannot hold", kernel,
                      index + 1, (long long)value, (unsigned long long)size);
        return PROGRAM_UNFIT;
    }
    memcpy(to, &narrow, 4);
    return 0;
}

static const int tensormap_type[] = {
    // CUtensorMapDataType of each enum dtype
    [DTYPE_F32] = 7, [DTYPE_F64] = 8,  [DTYPE_I32] = 3,  [DTYPE_I64] = 5,  [DTYPE_U8] = 0,
    [DTYPE_F16] = 6, [DTYPE_BF16] = 9, [DTYPE_E4M3] = 0, [DTYPE_E5M2] = 0, [DTYPE_I8] = 0,
};

static int put_tensormap(struct program *program, unsigned char *to,
                         const struct manifest_tensormap *map, const struct shape_case *shape,
                         const struct program_tensors *tensors, struct err *err)
{
    const struct tensor *tensor = &program->problem->tensor[map->tensor];
    uint64_t extent[PROBLEM_RANK_MAX], stride[PROBLEM_RANK_MAX], step;
    uint32_t box[PROBLEM_RANK_MAX], ones[PROBLEM_RANK_MAX];
    int rank = (int)tensor->rank, rc = 0;
    struct cu_tensormap *out = (struct cu_tensormap *)to;

    if (!program->gpu->driver.tensormap_tiled) {
        return err_set(err, ERR_UNSUPPORTED, "this CUDA driver knows no tensor maps");
    }
    step = dtype_size(tensor->dtype);
    for (int axis = rank - 1, at = 0; axis >= 0 && rc == 0; axis--, at++) {
        int64_t value = 0, edge = 0;

        rc = expr_eval(&value, tensor->shape[axis], shape->i, err);
        if (rc == 0) {
            rc = manifest_eval(program->manifest, map->box[axis], shape, program->problem, &edge,
                               err);
        }
        extent[at] = (uint64_t)value;
        box[at] = (uint32_t)edge;
        ones[at] = 1;
        step *= extent[at];
        stride[at] = step;
    }
    if (rc != 0) {
        return rc;
    }
    cu_result result = program->gpu->driver.tensormap_tiled(
        out, tensormap_type[tensor->dtype], (uint32_t)rank,
        (void *)(uintptr_t)tensors->tensor[map->tensor]->tensor, extent, stride, box, ones, 0,
        map->swizzle == 128 ? 3 : (int)map->swizzle / 32, 2, 0); // 32, 64, 128 are 1, 2, 3
    if (result != CU_OK) {
        (void)err_set(err, ERR_INVALID, "tensormap %s is none for %s: the driver refuses it",
                      map->name, tensor->name);
        return PROGRAM_UNFIT;
    }
    return 0;
}

static int put_argument(struct program *program, const struct manifest_launch *launch, size_t index,
                        uint64_t size, unsigned char *to, const struct shape_case *shape,
                        const struct program_tensors *tensors, struct err *err)
{
    const struct manifest_arg *arg = &launch->arg[index];
    const struct guarded_buffer *buffer = NULL;
    int64_t value;
    int rc;

    switch (arg->kind) {
    case ARG_TENSOR:
        buffer = tensors->tensor[arg->index];
        break;
    case ARG_EXPECTED:
        buffer = tensors->expected[arg->index];
        break;
    case ARG_SCALE:
        buffer = tensors->scale[arg->index];
        break;
    case ARG_SCRATCH:
        buffer = &program->scratch[arg->index];
        break;
    case ARG_TENSORMAP:
        return put_tensormap(program, to, &program->manifest->tensormap[arg->index], shape, tensors,
                             err);
    case ARG_INTEGER:
        rc = manifest_eval(program->manifest, arg->expr, shape, program->problem, &value, err);
        return rc == 0 ? put_integer(to, size, value, launch->kernel, index, err) : PROGRAM_UNFIT;
    case ARG_SCALAR:
        if (size == 8) {
            memcpy(to, &shape->f[arg->index], 8);
        } else {
            float narrow = (float)shape->f[arg->index];
            memcpy(to, &narrow, 4);
        }
        return 0;
    }
    if (!buffer) {
        return err_set(err, ERR_INTERNAL, "%s: argument %zu is nowhere", launch->kernel, index + 1);
    }
    memcpy(to, &buffer->tensor, 8);
    return 0;
}

int program_arguments(struct program *program, const struct cuda_kernel *kernel,
                      const struct manifest_launch *launch, struct program_launch *out,
                      const struct shape_case *shape, const struct program_tensors *tensors,
                      struct err *err)
{
    // A tensor map, the widest argument, has to lie at a multiple of 64.
    out->value = aligned_alloc(128, PROGRAM_PARAMETER_BYTES * 2);
    if (!out->value) {
        return err_set(err, ERR_SYSTEM, "no memory for the arguments of %s", launch->kernel);
    }
    if (kernel->sizes_count != launch->arg_count) {
        (void)err_set(err, ERR_INVALID, "%s has %zu parameters, its launch line %zu arguments",
                      launch->kernel, kernel->sizes_count, launch->arg_count);
        return PROGRAM_UNFIT;
    }
    size_t used = 0;
    int rc = 0;
    for (size_t i = 0; i < launch->arg_count && rc == 0; i++) {
        uint64_t size = kernel->sizes[i];
        enum manifest_arg_kind kind = launch->arg[i].kind;
        bool number = kind == ARG_INTEGER || kind == ARG_SCALAR;

        if (size != (kind == ARG_TENSORMAP ? TENSORMAP_BYTES : 8) && !(number && size == 4)) {
            (void)err_set(err, ERR_INVALID,
                          "%s: parameter %zu has %llu bytes, which no argument of"
                          " this kind has",
                          launch->kernel, i + 1, (unsigned long long)size);
            return PROGRAM_UNFIT;
        }
        size_t at = place_of(&used, (size_t)size);
        if (used > PROGRAM_PARAMETER_BYTES * 2) {
            (void)err_set(err, ERR_LIMIT, "%s has too many parameters", launch->kernel);
            return PROGRAM_UNFIT;
        }
        out->parameter[i] = out->value + at;
        rc = put_argument(program, launch, i, size, out->value + at, shape, tensors, err);
    }
    return rc;
}
