// One compilation: from a source text to an object and facts about it, or to one sentence why not.
#ifndef EXECUTOR_CPU_COMPILE_H
#define EXECUTOR_CPU_COMPILE_H

#include "common/err.h"
#include "executor/sandbox/zygote.h"
#include "proto/messages.h"

// Static data that an object may have.
#define COMPILE_STATIC_MAX ((uint64_t)1 << 30)
#define COMPILE_LOG_MAX ((size_t)65536)

// On success *report (uninitialised before) owns its parts; a source that does not compile is a
// success, with a verdict. Errors are those of the machine. The zygote has not been entered yet;
// it is of no further use afterwards.
MUST_CHECK int compile_run(const struct compile_plan *plan, struct zygote *zygote,
                           struct compile_outcome *outcome, struct err *err);

#endif
