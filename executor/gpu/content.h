// The contents of a case: which values the inputs have. They follow from the plan's seed, the case and
// the content's number, so that the executor and its oracle, two processes, make the same ones.
#ifndef EXECUTOR_GPU_CONTENT_H
#define EXECUTOR_GPU_CONTENT_H

#include "executor/gpu/area.h"
#include "problem/problem.h"

// Elements and bytes of every tensor of a case.
struct content_sizes {
    size_t count[PROBLEM_TENSOR_MAX];
    size_t bytes[PROBLEM_TENSOR_MAX];
    size_t last[PROBLEM_TENSOR_MAX]; // extent of the last axis
};

MUST_CHECK int content_sizes(const struct problem *problem, const struct shape_case *shape,
                             struct content_sizes *ret, struct err *err);
// Queues: fills an in or inout tensor. case_index and number are the content's name.
MUST_CHECK int content_fill(struct gpu *gpu, const struct tensor *tensor, size_t index,
                            const struct area *area, const struct content_sizes *sizes,
                            uint64_t seed, uint64_t case_index, uint64_t number, struct err *err);

#endif
