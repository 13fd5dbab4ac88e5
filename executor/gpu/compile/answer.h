// A process that answers compile_plans, whatever it makes objects of. The serving modes
// cuda-compile and cuda-record call it.
#ifndef EXECUTOR_GPU_COMPILE_ANSWER_H
#define EXECUTOR_GPU_COMPILE_ANSWER_H

#include "proto/messages.h"

// Serves frames (executor/frame.h) from stdin to stdout until stdin ends: reads each as a
// compile_plan, has `make` make an outcome of it, which gets the toolchain, and answers with that.
// Returns 0 at the end of stdin, or the error that ended the serving: a frame's, a plan's, or what
// make returns.
MUST_CHECK int compile_serve(const char *toolchain,
                             int (*make)(void *owner, const struct compile_plan *plan,
                                         struct compile_outcome *ret, struct err *err),
                             void *owner, struct err *err);

#endif
