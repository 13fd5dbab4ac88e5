// What every compiler of kcast-exec reports in the same way: the first reason against a source, the
// sentences about exceeded limits, and text that is safe to print. Called by executor/cpu/compile.c
// and executor/gpu/compile/. It must know no compiler.
#ifndef EXECUTOR_COMPILE_RESULT_H
#define EXECUTOR_COMPILE_RESULT_H

#include "common/err.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <stddef.h>
#include <stdint.h>

// Sets verdict and reason unless they are set already. Takes the malloc'd reason in either case. A
// reason that is missing or blank is replaced by a sentence that says so: no refusal is without
// one.
void compile_result_refuse(struct compiled *compiled, enum verdict verdict, char *reason_take);
// Refuses a source whose compilation takes more processor time than the plan allows.
void compile_result_refuse_slow(struct compiled *compiled, const struct compile_plan *plan);
// Refuses a source whose object is larger than so many bytes.
void compile_result_refuse_large(struct compiled *compiled, uint64_t most);

// Refuses a source whose compilation takes more memory than the plan allows.
void compile_result_refuse_memory(struct compiled *compiled, const struct compile_plan *plan);

// Sets the error of a compilation that has not ended when its wall time was over, though its
// processor time was not: it has used cpu_seconds of it. The host is to blame, not the source.
// Returns the error's code.
int compile_result_stalled(const struct compile_plan *plan, double cpu_seconds, struct err *err);

// Returns how a compiler with this wait status has ended, malloc'd: "was ended by SIGSEGV", "ended
// with exit status 4".
char *compile_result_end(int status);

// Shortens a log of len bytes to at most max bytes (at least 200), in place: leaves out its middle,
// because a source can make a compiler say very much before it says what is wrong. Returns the new
// length; a NUL follows.
size_t compile_result_fold(char *log, size_t len, size_t max);

// Replaces by '?', in place, every byte of what is not printable, except newlines and tabs.
void compile_result_clean(char *text, size_t len);

#endif
