// Compiling sealed CUDA sources: from a compile_plan to an object (a packed cuda_object) and facts
// about it, or to one sentence why not. The serving mode (executor/gpu/compile/serve.h) calls it.
// It must not know where plans come from, and it needs no GPU.
#ifndef EXECUTOR_GPU_COMPILE_COMPILE_H
#define EXECUTOR_GPU_COMPILE_COMPILE_H

#include "executor/gpu/compile/jail.h"
#include "proto/messages.h"

// Compiles the plan's source in the jail, as far as the plan needs it: what the features need, or
// all variants, or those that the known object lacks. Features and object are the same bytes
// whichever way they were made. *outcome may be uninitialised; on success the caller owns
// its parts. A source that does not compile is a success with a verdict. An error is a failure of
// the machine or of the plan.
MUST_CHECK int compile_cuda(const struct compile_plan *plan, struct cuda_jail *jail,
                            struct compile_outcome *outcome, struct err *err);

#endif
