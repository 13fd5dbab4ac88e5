// Facts about a compiled candidate, from the compiler's log, its PTX, its disassembly and its manifest: what forecasts are
// learnt from. Names are stable: a name never changes its meaning.
#ifndef EXECUTOR_GPU_COMPILE_FEATURES_H
#define EXECUTOR_GPU_COMPILE_FEATURES_H

#include "executor/gpu/compile/nvrtc.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/messages.h"

// Appends the features of one compiled variant, whose launches are taken for the given case (the first
// benchmark case). facts are the device's, for occupancy and the roofline; where they are missing so are
// the features that need them.
void cuda_features(const struct nvrtc_output *output, const struct manifest *manifest,
                   const struct problem *problem, const struct shape_case *shape,
                   const struct fact *device, size_t device_count, struct fact **list,
                   size_t *count);

#endif
