// Timed launches: two arms against each other over the benchmark cases, in ABBA blocks
// (executor/timing.h), every launch verified.
#ifndef EXECUTOR_CPU_PAIRED_RUN_H
#define EXECUTOR_CPU_PAIRED_RUN_H

#include "executor/cpu/harness.h"
#include "executor/paired_timing.h"

struct paired_run {
    struct harness *harness;
    enum arm_index first, second; // ratio: time of first / time of second
    struct paired_timing
        paired_timing; // rule, max_seconds, looks and lanes (trial: struct trial) by the caller
};

// Runs until decided, capped or through all looks. trial contents 0 and 1 must be made. HARNESS_STOP
// when the candidate fails.
MUST_CHECK int paired_run_run(struct paired_run *paired_run, struct err *err);

// After a race of baseline and candidate: launches on contents that were never seen. A candidate
// that is much slower on those than on the repeated ones remembers answers: HARNESS_STOP,
// QUARANTINED.
MUST_CHECK int paired_run_probe_fresh(struct paired_run *paired_run, struct err *err);

#endif
