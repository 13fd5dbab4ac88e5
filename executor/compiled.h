// What a compilation comes to, whichever compiler it was: the first reason against a source stays, and
// what is said of limits is said in the same words.
#ifndef EXECUTOR_COMPILED_H
#define EXECUTOR_COMPILED_H

#include "proto/messages.h"
#include "proto/verdict.h"
#include <stddef.h>

// Sets verdict and reason, unless there are some; takes the reason in either case.
void compiled_refuse(struct compiled *compiled, enum verdict verdict, char *reason_take);
// It took longer than the plan allows.
void compiled_refuse_slow(struct compiled *compiled, const struct compile_plan *plan);
// Its object is larger than the plan allows.
void compiled_refuse_large(struct compiled *compiled, const struct compile_plan *plan);

// Replaces, in place, what is not valid UTF-8, NUL and control characters other than newline and
// tab by '?'.
void compiled_clean(char *text, size_t len);

#endif
