// Measuring sealed candidates on a GPU.
#ifndef EXECUTOR_GPU_MEASURE_H
#define EXECUTOR_GPU_MEASURE_H

#include "executor/measure.h"

// The machine is a struct bench (executor/gpu/bench.h), zero but for its gpu and oracle. The report's retire
// is set when the GPU's context can no longer be used; after a hang the process can only _exit.
extern const struct measure_ops measure_gpu;

#endif
