// Looking for the result of an equal job in the result cache: the cache's key for a job, and what
// the cached result is checked against. Used by submission, by a run before it begins, and by
// completion when it stores a result. Knows nothing of the ledger, which does the looking up.
#ifndef DAEMON_RUN_CACHED_RESULT_H
#define DAEMON_RUN_CACHED_RESULT_H

#include "common/digest.h"
#include "common/mem.h"
#include <stdbool.h>

struct job;

// Returns the key of the result cache for a MEASURE job. Its device class must be set.
struct digest cached_result_key(const struct job *job, bool sandbox_off);
// Returns the packed part of the job's specification that cache_adopt compares with a cached
// result. The caller clears it.
struct bytes cached_result_question(const struct job *job);

#endif
