// Timed launches of two arms against each other on a GPU: exec/paired timing.h with blocks from the bench.
#ifndef EXECUTOR_GPU_RACE_H
#define EXECUTOR_GPU_RACE_H

#include "executor/gpu/bench.h"
#include "executor/paired_timing.h"

struct paired_run_cuda {
    struct bench *bench;
    enum bench_arm first, second; // ratio: time of first / time of second
    unsigned arms;                // that are placed with a trial
    struct paired_timing
        paired_timing; // rule, max_seconds, looks and lanes (trial: struct bench_trial) by the caller
};

// Runs until decided, capped or through all looks. BENCH_STOP when the candidate fails.
MUST_CHECK int paired_run_cuda_run(struct paired_run_cuda *paired_run, struct err *err);
// After a race of baseline and candidate: launches on contents that were never seen. A candidate that is
// much slower on those than on the repeated ones remembers answers: BENCH_STOP, QUARANTINED.
MUST_CHECK int paired_run_cuda_fresh(struct paired_run_cuda *paired_run, struct err *err);

#endif
