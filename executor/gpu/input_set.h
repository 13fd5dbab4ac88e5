// One set of input data for a case: the values of all its input tensors. A set is named by the
// case, the seed of the plan and a number; the values follow from the name alone. So the executor
// and its oracle, which are two processes, make the same inputs without exchanging them. Both call
// this module. It must not know what the inputs are used for.
#ifndef EXECUTOR_GPU_INPUT_SET_H
#define EXECUTOR_GPU_INPUT_SET_H

#include "executor/gpu/guarded_buffer.h"
#include "problem/problem.h"

// The name of a set.
struct input_set {
    struct shape_case shape;
    uint64_t seed;       // of the plan
    uint64_t case_index; // of the case, among all cases of the measurement
    uint64_t number;     // of the content, among those of this case
};

// How large each tensor of a case is.
struct tensor_sizes {
    size_t count[PROBLEM_TENSOR_MAX]; // elements
    size_t bytes[PROBLEM_TENSOR_MAX];
    size_t last[PROBLEM_TENSOR_MAX]; // extent of the last axis
};

// Computes the sizes for a shape. Fails when an expression of the problem has no valid value.
MUST_CHECK int tensor_sizes_of(const struct problem *problem, const struct shape_case *shape,
                               struct tensor_sizes *ret, struct err *err);
// Queues filling the placed buffer with the set's values for tensor number `tensor`, which is an
// input or an in-out tensor.
MUST_CHECK int input_set_fill(const struct input_set *set, struct gpu *gpu,
                              const struct problem *problem, size_t tensor,
                              const struct guarded_buffer *buffer, const struct tensor_sizes *sizes,
                              struct err *err);

// Queues comparing the buffer with the set's values: adds the number of places that differ to
// result word `at`.
MUST_CHECK int input_set_check(const struct input_set *set, struct gpu *gpu,
                               const struct problem *problem, size_t tensor,
                               const struct guarded_buffer *buffer,
                               const struct tensor_sizes *sizes, size_t at, struct err *err);

#endif
