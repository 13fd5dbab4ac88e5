// How a MEASURE job is looked up in the result cache: its key, and the question whether a cached
// result answers it. Asked when the job is submitted, before it is measured, and when its result is
// stored. Pure functions; the cache itself is in the ledger.
#ifndef DAEMON_RUN_JOB_CACHE_H
#define DAEMON_RUN_JOB_CACHE_H

#include "common/digest.h"
#include "common/mem.h"
#include "daemon/state/job.h"

// The key of the job's result. The job has its setup and its class of devices.
struct digest job_cache_key(const struct job *job, bool sandbox_off);
// A packed job_spec with the fields that cache_adopt looks at. The caller frees it.
struct bytes job_cache_question(const struct job *job);

#endif
