#include "executor/gpu/input_set.h"
#include "executor/input_values.h"
#include "executor/inputs.h"
#include <math.h>

int tensor_sizes_of(const struct problem *problem, const struct shape_case *shape,
                    struct tensor_sizes *ret, struct err *err)
{
    for (size_t t = 0; t < problem->tensor_count; t++) {
        int rc = problem_elements(problem, t, shape, &ret->count[t], err);
        if (rc != 0) {
            return rc;
        }
        rc = problem_last_extent(problem, t, shape, &ret->last[t], err);
        if (rc != 0) {
            return rc;
        }
        ret->bytes[t] = ret->count[t] * dtype_size(problem->tensor[t].dtype);
    }
    return 0;
}

// Whether the values are made by arithmetic in float (executor/gpu/device/kernels_inputs.cu).
static bool is_quick(enum dtype dtype, enum distribution distribution)
{
    bool narrow = dtype == DTYPE_F32 || dtype == DTYPE_F16 || dtype == DTYPE_BF16 ||
                  dtype == DTYPE_E4M3 || dtype == DTYPE_E5M2;

    return narrow && (distribution == VALUES_NORMAL || distribution == VALUES_UNIFORM ||
                      distribution == VALUES_WIDE);
}

// Queues the kernel. differ is where it counts, when it shall compare; 0: it shall fill.
static int run(const struct input_set *set, struct gpu *gpu, const struct problem *problem,
               size_t tensor, const struct guarded_buffer *buffer, const struct tensor_sizes *sizes,
               cu_pointer differ, struct err *err)
{
    const struct tensor *t = &problem->tensor[tensor];
    cu_pointer out = buffer->tensor;
    const struct values *values = input_values(t, set->seed, set->case_index, set->number);
    int dtype = (int)t->dtype, distribution = (int)values->distribution;
    double a = values->a, b = values->b;
    uint64_t key = inputs_key(set->seed, set->case_index, set->number, tensor);
    uint64_t count = sizes->count[tensor], last = sizes->last[tensor];

    if (is_quick(t->dtype, values->distribution)) {
        bool wide = values->distribution == VALUES_WIDE;
        float low = (float)(wide ? log2(a) : a), high = (float)(wide ? log2(b) : b);

        return gpu_run(gpu, GPU_INPUTS_QUICK, count,
                       (void *[]){&out, &dtype, &distribution, &low, &high, &key, &count, &differ},
                       err);
    }
    return gpu_run(gpu, GPU_INPUTS, count,
                   (void *[]){&out, &dtype, &distribution, &a, &b, &key, &count, &last, &differ},
                   err);
}

int input_set_fill(const struct input_set *set, struct gpu *gpu, const struct problem *problem,
                   size_t tensor, const struct guarded_buffer *buffer,
                   const struct tensor_sizes *sizes, struct err *err)
{
    return run(set, gpu, problem, tensor, buffer, sizes, 0, err);
}

int input_set_check(const struct input_set *set, struct gpu *gpu, const struct problem *problem,
                    size_t tensor, const struct guarded_buffer *buffer,
                    const struct tensor_sizes *sizes, size_t at, struct err *err)
{
    return run(set, gpu, problem, tensor, buffer, sizes, gpu_word(gpu, at), err);
}
