// NVIDIA's assembler, as the library nvJitLink has it: PTX goes in, a cubin comes out. It is loaded
// by dlopen. PTX that is not trusted must go through the jail (executor/gpu/compile/jail.h), whose
// compile server calls this.
#ifndef EXECUTOR_GPU_COMPILE_ASSEMBLER_H
#define EXECUTOR_GPU_COMPILE_ASSEMBLER_H

#include "executor/gpu/compile/nvrtc.h"

struct assembler; // the loaded library

// Loads the toolkit's nvJitLink, which must have one. The library stays loaded until the process
// ends.
MUST_CHECK int assembler_open(struct assembler **ret, const struct toolkit *toolkit,
                              struct err *err);
void assembler_close(struct assembler *assembler); // NULL is fine

// Assembles PTX. Names of kernels are symbols. PTX that is refused is a success with `compiled`
// false, with places in the log as NVRTC writes them, "candidate.ptx(12): error: …".
MUST_CHECK int assembler_assemble(const struct assembler *assembler,
                                  const struct nvrtc_input *input, struct nvrtc_output *ret,
                                  struct err *err);

#endif
