// One answer of a process that serves compile_plans, whatever it makes objects of. The serving
// modes cuda-compile and cuda-record call it.
#ifndef EXECUTOR_GPU_COMPILE_ANSWER_H
#define EXECUTOR_GPU_COMPILE_ANSWER_H

#include "proto/messages.h"

#define COMPILE_PLAN_MAX ((size_t)160 << 20) // bytes: source, problem and a known object

// Reads the packed plan, has `make` make an outcome of it, which gets the toolchain, and packs
// that. *ret is the caller's to clear. Returns 0 or an error: the plan's, or what make returns.
MUST_CHECK int compile_answer(const struct bytes *packed_plan, const char *toolchain,
                              int (*make)(void *owner, const struct compile_plan *plan,
                                          struct compile_outcome *ret, struct err *err),
                              void *owner, struct bytes *ret, struct err *err);

#endif
