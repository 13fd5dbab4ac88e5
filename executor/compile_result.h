// What every compiler of kcast-exec reports in the same way: the first reason against a source, the
// sentences about exceeded limits, and text that is safe to print. Called by executor/cpu/compile.c
// and executor/gpu/compile/. It must know no compiler.
#ifndef EXECUTOR_COMPILE_RESULT_H
#define EXECUTOR_COMPILE_RESULT_H

#include "proto/messages.h"
#include "proto/verdict.h"
#include <stddef.h>

// Sets verdict and reason unless they are set already. Takes the malloc'd reason in either case.
void compile_result_refuse(struct compiled *compiled, enum verdict verdict, char *reason_take);
// Refuses a source whose compilation takes longer than the plan allows.
void compile_result_refuse_slow(struct compiled *compiled, const struct compile_plan *plan);
// Refuses a source whose object is larger than the plan allows.
void compile_result_refuse_large(struct compiled *compiled, const struct compile_plan *plan);

// Replaces by '?', in place, every byte that is not valid UTF-8, NUL, and control characters other
// than newline and tab.
void compile_result_clean(char *text, size_t len);

#endif
