// NVRTC, NVIDIA's run-time compiler, loaded by dlopen: CUDA C++ text in, a cubin out. Whoever compiles
// text that is not trusted does so in a jail (executor/gpu/compile/compile.h): this is the bare compiler.
#ifndef EXECUTOR_GPU_COMPILE_NVRTC_H
#define EXECUTOR_GPU_COMPILE_NVRTC_H

#include "common/err.h"
#include "common/mem.h"
#include "executor/gpu/compile/toolkit.h"
#include <stdbool.h>
#include <stddef.h>

#define NVRTC_NAMES_MAX 32

struct nvrtc; // the loaded library

MUST_CHECK int nvrtc_open(struct nvrtc **ret, const struct toolkit *toolkit, struct err *err);
void nvrtc_close(struct nvrtc *nvrtc); // NULL is fine

struct nvrtc_input {
    const char *source;      // NUL-terminated
    const char *file;        // how messages call it: "candidate.cu"
    const char *target;      // "sm_90"
    const char *const *name; // name expressions of kernels
    size_t name_count;       // at most NVRTC_NAMES_MAX
};

// What one compilation gave; release with nvrtc_output_release.
struct nvrtc_output {
    bool compiled;
    char *log;          // the compiler's, with ptxas's table of registers and spills
    struct bytes cubin; // when compiled
    char *ptx;
    char *
        sass; // disassembly of the cubin; NULL: none (only a jail gives it, executor/gpu/compile/jail.h)
    char *symbol[NVRTC_NAMES_MAX]; // of the kernels, in the order of name
};

// A source that does not compile is a success with compiled false.
MUST_CHECK int nvrtc_compile(struct nvrtc *nvrtc, const struct nvrtc_input *input,
                             struct nvrtc_output *ret, struct err *err);
void nvrtc_output_release(struct nvrtc_output *output);

// "nvrtc 13.0"; malloc'd.
MUST_CHECK int nvrtc_version(struct nvrtc *nvrtc, char **ret, struct err *err);
// The whole toolkit for a caller that has nothing open: "nvrtc 13.0, nvdisasm", or "…, no nvdisasm".
MUST_CHECK int nvrtc_toolchain(char **ret, struct err *err);

#endif
