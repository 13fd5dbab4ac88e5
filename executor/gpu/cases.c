#include "executor/gpu/cases.h"
#include "executor/gpu/gpu.h"

#define FLUSH_FACTOR 3 // times the L2 cache; a smaller flush leaves parts of it (docs/measuring.md)
#define FLUSH_LEAST ((size_t)64 << 20) // bytes

size_t gpu_cases(const struct problem *problem, enum compile_role role, uint64_t hidden_seed,
                 struct shape_case out[static GPU_CASES_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < problem->bench_count; i++) {
        out[count++] = problem->bench[i];
    }
    if (role == COMPILE_BASELINE) {
        return count;
    }
    for (size_t i = 0; i < problem->check_count; i++) {
        out[count++] = problem->check[i];
    }
    if (problem->has_hidden) {
        count += problem_hidden_cases(problem, hidden_seed, out + count);
    }
    return count;
}

size_t gpu_flush_size(size_t l2_bytes)
{
    size_t bytes = FLUSH_FACTOR * l2_bytes;

    return bytes > FLUSH_LEAST ? bytes : FLUSH_LEAST;
}

size_t gpu_next_area(size_t placed, size_t bytes, size_t *ret_placed)
{
    size_t at = (placed + GUARD_BYTES + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;

    *ret_placed = at + bytes;
    return at;
}

void gpu_tensor_addresses(size_t l2_bytes, const size_t *bytes, size_t count, cu_pointer *ret)
{
    size_t placed = 0;

    (void)gpu_next_area(placed, GPU_WORDS_BYTES, &placed);
    (void)gpu_next_area(placed, gpu_flush_size(l2_bytes), &placed);
    for (size_t i = 0; i < count; i++) {
        ret[i] = ARENA_OPEN + gpu_next_area(placed, bytes[i], &placed);
    }
}
