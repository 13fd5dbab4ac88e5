#include "executor/gpu/content.h"
#include "executor/inputs.h"

int content_sizes(const struct problem *problem, const struct shape_case *shape,
                  struct content_sizes *ret, struct err *err)
{
    int rc = 0;

    for (size_t t = 0; t < problem->tensor_count && rc == 0; t++) {
        rc = problem_elements(problem, t, shape, &ret->count[t], err);
        if (rc == 0) {
            rc = problem_last_extent(problem, t, shape, &ret->last[t], err);
        }
        ret->bytes[t] = rc == 0 ? ret->count[t] * dtype_size(problem->tensor[t].dtype) : 0;
    }
    return rc;
}

int content_fill(struct gpu *gpu, const struct tensor *tensor, size_t index,
                 const struct area *area, const struct content_sizes *sizes, uint64_t seed,
                 uint64_t case_index, uint64_t number, struct err *err)
{
    cu_pointer out = area->tensor;
    int dtype = (int)tensor->dtype, distribution = (int)tensor->distribution;
    double a = tensor->value[0], b = tensor->value[1];
    uint64_t key = inputs_key(seed, case_index, number, index);
    uint64_t count = sizes->count[index], last = sizes->last[index];

    return gpu_run(gpu, GPU_FILL, count,
                   (void *[]){&out, &dtype, &distribution, &a, &b, &key, &count, &last}, err);
}
