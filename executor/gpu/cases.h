// The cases that a source will meet, and where their tensors are then. What is compiled or recorded
// ahead of a measurement follows from them. Pure.
#ifndef EXECUTOR_GPU_CASES_H
#define EXECUTOR_GPU_CASES_H

#include "executor/gpu/driver.h"
#include "problem/problem.h"
#include "proto/verdict.h"

#define GPU_CASES_MAX (2 * PROBLEM_CASE_MAX + PROBLEM_HIDDEN_CASES)

// Collects benchmark cases, but for a baseline check and hidden cases as well. Returns how many.
size_t gpu_cases(const struct problem *problem, enum compile_role role, uint64_t hidden_seed,
                 struct shape_case out[static GPU_CASES_MAX]);

// Bytes of the memory that is overwritten to flush an L2 cache of this size.
size_t gpu_flush_size(size_t l2_bytes);
// Where an area of an arena begins that is placed when `placed` bytes of it are, as an offset from
// its base. *ret_placed is what is placed then.
size_t gpu_next_area(size_t placed, size_t bytes, size_t *ret_placed);
// Sets the addresses of `count` tensors of these sizes, as the GPU harness places them on a GPU
// with such a cache (executor/gpu/harness.c), if its arena is where it is meant to be.
void gpu_tensor_addresses(size_t l2_bytes, const size_t *bytes, size_t count, cu_pointer *ret);

#endif
