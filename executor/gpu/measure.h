// Measuring sealed candidates on a GPU: the functions that executor/measure.c calls for a GPU. The
// serving mode (executor/gpu/serve.c) passes them to measure_run. They must not know the order in
// which they are called.
#ifndef EXECUTOR_GPU_MEASURE_H
#define EXECUTOR_GPU_MEASURE_H

#include "executor/measure.h"

// The machine is a struct gpu_harness (executor/gpu/harness.h), which is zero except for its gpu
// and oracle. The outcome's `retire` is set when the context of the GPU can no longer be used.
// After a kernel that did not end (gpu->hung) the process can only end by _exit.
extern const struct measure_ops measure_gpu;

#endif
