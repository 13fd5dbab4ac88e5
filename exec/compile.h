// One compilation: from a source text to an object and facts about it, or to one sentence why not.
#ifndef EXEC_COMPILE_H
#define EXEC_COMPILE_H

#include "common/err.h"
#include "exec/nursery.h"
#include "proto/all.h"

// Static data that an object may have.
#define COMPILE_STATIC_MAX ((uint64_t)1 << 30)
#define COMPILE_LOG_MAX ((size_t)65536)

// On success *report (uninitialised before) owns its parts; a source that does not compile is a
// success, with a verdict. Errors are those of the machine. The nursery has not been entered yet;
// it is of no further use afterwards.
MUST_CHECK int compile_run(const struct compile_plan *plan, struct nursery *nursery,
                           struct compile_report *report, struct err *err);

#endif
