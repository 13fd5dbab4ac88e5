// Facts about a compiled source, which forecasts are learnt from. They come from the compiler's
// log, the PTX, the disassembly and the launches of the manifest. executor/gpu/compile/compile.c
// calls it. A name is stable: it never gets another meaning, because models that are stored use it.
#ifndef EXECUTOR_GPU_COMPILE_FEATURES_H
#define EXECUTOR_GPU_COMPILE_FEATURES_H

#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/compile/nvrtc.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/messages.h"

// Appends the features of one compiled variant to the list. Launches are those of the given shape,
// which is the first benchmark case. `device` are facts about the device, for occupancy and
// roofline; where one is missing, the features that need it are left out.
void cuda_features(const struct nvrtc_output *output, const struct bytes *cubin,
                   const struct manifest *manifest, const struct problem *problem,
                   const struct shape_case *shape, const struct fact *device, size_t device_count,
                   struct fact **list, size_t *count);

// One launch of kernels.
struct cuda_form {
    double blocks;  // of the grid
    double threads; // of a block
    double smem;    // dynamic shared memory of a block, in bytes
};

// Returns the number of the launch with the most threads, the first of them; 0 when there is none.
size_t cuda_largest_form(const struct cuda_form *form, size_t count);
// Appends what follows from launches that were recorded, by the same names: what the one with the
// most threads takes and how it fits the device, and the roofline. `usage` is of its kernel.
void cuda_features_of_forms(const struct cubin_usage *usage, const struct cuda_form *form,
                            size_t form_count, const struct problem *problem,
                            const struct shape_case *shape, const struct fact *device,
                            size_t device_count, struct fact **list, size_t *count);

#endif
