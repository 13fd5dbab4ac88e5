// Compiling sealed CUDA sources: from a compile_plan to an object (a packed cuda_object) and facts about it,
// or to one sentence why not.
#ifndef EXECUTOR_GPU_COMPILE_COMPILE_H
#define EXECUTOR_GPU_COMPILE_COMPILE_H

#include "executor/gpu/compile/jail.h"
#include "proto/messages.h"

// On success *report (uninitialised before) owns its parts; a source that does not compile is a success,
// with a verdict. Errors are those of the machine.
MUST_CHECK int compile_cuda(const struct compile_plan *plan, struct cuda_jail *jail,
                            struct compile_outcome *outcome, struct err *err);

// kcast-exec cuda-compile: serves frames (executor/frame.h) from stdin to stdout until stdin ends: a
// compile_plan each, a compile_outcome back. An empty frame says that the compiler is warm.
MUST_CHECK int serve_cuda_compile(struct err *err);

#endif
