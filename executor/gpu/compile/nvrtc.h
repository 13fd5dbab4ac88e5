// NVRTC, NVIDIA's run-time compiler, loaded by dlopen: CUDA C++ goes in, a cubin comes out. This is
// the bare compiler. A text that is not trusted must be compiled through the jail
// (executor/gpu/compile/jail.h) instead. The compile server inside the jail calls it, and
// executor/gpu/device/kernels.c for the executor's own kernels.
#ifndef EXECUTOR_GPU_COMPILE_NVRTC_H
#define EXECUTOR_GPU_COMPILE_NVRTC_H

#include "common/err.h"
#include "common/mem.h"
#include "executor/gpu/compile/toolkit.h"
#include "problem/candidate_form.h"
#include <stdbool.h>
#include <stddef.h>

#define NVRTC_NAMES_MAX 32 // kernels of one source

struct nvrtc; // the loaded library

// Loads the toolkit's NVRTC. The library itself stays loaded until the process ends.
MUST_CHECK int nvrtc_open(struct nvrtc **ret, const struct toolkit *toolkit, struct err *err);
void nvrtc_close(struct nvrtc *nvrtc); // NULL is fine

struct nvrtc_input {
    enum candidate_form form; // of the source; NVRTC itself compiles FORM_SEALED only
    const char *source;       // NUL-terminated
    const char *file;         // its name of the source in messages: "candidate.cu"
    const char *target;       // "sm_90"
    const char *const *name;  // name expressions of the kernels: "scale<128>"
    size_t name_count;        // at most NVRTC_NAMES_MAX
};

// The result of one compilation. The caller releases it with nvrtc_output_release.
struct nvrtc_output {
    bool compiled;
    char result[160];   // not compiled: what NVRTC calls it, "NVRTC_ERROR_COMPILATION"
    char *log;          // the compiler's messages and ptxas's table of registers and spills
    struct bytes cubin; // this and all below: only when compiled
    char *ptx;          // NULL: it was a cubin from the start
    char *sass;         // disassembly of the cubin; NULL: none. Only the jail makes it.
    char *symbol[NVRTC_NAMES_MAX]; // mangled name of each kernel, in the order of input->name
};

// Compiles a source. A source that does not compile is a success with `compiled` false.
MUST_CHECK int nvrtc_compile(struct nvrtc *nvrtc, const struct nvrtc_input *input,
                             struct nvrtc_output *ret, struct err *err);
void nvrtc_output_release(struct nvrtc_output *output);
// Returns the option for the target, for the caller to free. Instructions that only Hopper has
// (wgmma, setmaxnreg) need the target with the letter "a".
char *nvrtc_architecture(const char *target);

// Says which one it is: "nvrtc 13.0". The caller frees *ret.
MUST_CHECK int nvrtc_version(struct nvrtc *nvrtc, char **ret, struct err *err);
// Describes the machine's toolkit: "nvrtc 13.0, nvdisasm" or "nvrtc 13.0, no nvdisasm". The caller
// frees *ret.
MUST_CHECK int nvrtc_toolchain(char **ret, struct err *err);

#endif
