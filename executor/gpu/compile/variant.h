// What the cubin of one variant of a source says, held against the source's manifest: its kernels,
// their parameters, its variables, what it calls, which device it is for. A part of
// executor/gpu/compile/compile.c, which alone calls it. It must not know which variant it is.
#ifndef EXECUTOR_GPU_COMPILE_VARIANT_H
#define EXECUTOR_GPU_COMPILE_VARIANT_H

#include "executor/gpu/compile/nvrtc.h"
#include "problem/manifest.h"
#include "proto/messages.h"

struct variant_source {
    const char *name;                // of the source, for messages
    const char *target;              // "sm_90"
    const struct manifest *manifest; // of the source
    struct compiled *compiled;       // is given a verdict when the source is refused
};

// Takes over the cubin, which is not trusted, and fills the variant with what it says. One that
// makes no sense is a compile error of the source's.
void variant_take(const struct variant_source *of, const struct nvrtc_input *input,
                  struct nvrtc_output *output, struct cuda_variant *variant);

#endif
