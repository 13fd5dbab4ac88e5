// Sealed sources, compiled for a program that streams data through them (tests/gpu/stream.c): by
// NVRTC in this process, with the text that docs/problems.md promises a source. Needs no GPU. It
// must not know how kcast measures.
#ifndef TESTS_GPU_STREAM_CODE_H
#define TESTS_GPU_STREAM_CODE_H

#include "executor/gpu/compile/nvrtc.h"
#include "problem/manifest.h"
#include "problem/problem.h"
#include "proto/messages.h"

struct stream_code {
    struct manifest *manifest;
    struct bytes cubin;
    struct cuda_kernel kernel[NVRTC_NAMES_MAX]; // name, symbol and sizes of the parameters
    size_t kernel_count;
};

// Compiles source, which is NUL-terminated, for a target such as "sm_90". name stands for the
// source in sentences. ERR_INVALID, with the compiler's first words, when it does not compile;
// ERR_UNSUPPORTED when the source specialises on parameters or has tensor maps, which this does not
// do. The caller releases *ret, also after an error.
MUST_CHECK int stream_code_compile(struct stream_code *ret, struct nvrtc *nvrtc, const char *target,
                                   const struct problem *problem, const char *source,
                                   const char *name, struct err *err);
void stream_code_release(struct stream_code *code); // what is all 0 is fine

// The kernel with this name in the manifest; NULL when there is none.
const struct cuda_kernel *stream_code_kernel(const struct stream_code *code, const char *name);

#endif
