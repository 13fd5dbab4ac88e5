// Timed launches of two arms against each other on a GPU: exec/contest.h with blocks from the bench.
#ifndef CUDA_RACE_H
#define CUDA_RACE_H

#include "cuda/bench.h"
#include "exec/contest.h"

struct race_cuda {
    struct bench *bench;
    enum bench_arm first, second; // ratio: time of first / time of second
    unsigned arms;                // that are placed with a trial
    struct contest contest;       // rule, max_seconds, looks and lanes (trial: struct bench_trial) by the caller
};

// Runs until decided, capped or through all looks. BENCH_STOP when the candidate fails.
MUST_CHECK int race_cuda_run(struct race_cuda *race, struct err *err);
// After a race of baseline and candidate: launches on contents that were never seen. A candidate that is
// much slower on those than on the repeated ones remembers answers: BENCH_STOP, QUARANTINED.
MUST_CHECK int race_cuda_fresh(struct race_cuda *race, struct err *err);

#endif
