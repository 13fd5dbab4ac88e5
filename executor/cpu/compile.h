// One compilation with gcc: from a source text to an object and its features, or to one sentence
// that says why not. executor/main.c and the probe call this. It must not know what the object is
// for.
#ifndef EXECUTOR_CPU_COMPILE_H
#define EXECUTOR_CPU_COMPILE_H

#include "common/err.h"
#include "executor/sandbox/zygote.h"
#include "proto/messages.h"

// Bytes of static data that an object may have.
#define COMPILE_STATIC_MAX ((uint64_t)1 << 30)
// Bytes of the compiler's output that are kept.
#define COMPILE_LOG_MAX ((size_t)65536)

// *outcome may be uninitialised; on success the caller owns its parts. A source that does not
// compile is a success with a verdict; an error is a failure of the machine. The zygote must not
// have been entered yet; it enters the jail.
MUST_CHECK int compile_run(const struct compile_plan *plan, struct zygote *zygote,
                           struct compile_outcome *outcome, struct err *err);

#endif
