// Features of a recording for forecasts: what is known of the candidate before it is measured.
#ifndef EXECUTOR_GPU_RECORD_FEATURES_H
#define EXECUTOR_GPU_RECORD_FEATURES_H

#include "problem/problem.h"
#include "proto/messages.h"
#include <stddef.h>

// Appends the features of what was launched for the case to the list: how many kernels, fills and
// copies, how large grids, blocks, shared memory, memory and code are; and of the kernel with the
// most threads registers, occupancy and what else a sealed source has. facts are those of the GPU.
// Adds nothing when the case was not recorded.
void record_features(const struct cuda_recording *recording, const struct problem *problem,
                     const struct shape_case *shape, const struct fact *facts, size_t facts_count,
                     struct fact **list, size_t *count);

// Returns the kernel with the most threads; NULL when there is none. It is part of the case.
const struct recorded_node *record_largest_kernel(const struct recorded_case *of);

#endif
