// Timed launches: two arms against each other over the benchmark cases, in ABBA blocks
// (exec/timing.h), every launch verified.
#ifndef EXEC_RACE_H
#define EXEC_RACE_H

#include "exec/contest.h"
#include "exec/judge.h"

struct race {
    struct judge *judge;
    enum arm_index first, second; // ratio: time of first / time of second
    struct contest contest;       // rule, max_seconds, looks and lanes (trial: struct trial) by the caller
};

// Runs until decided, capped or through all looks. trial contents 0 and 1 must be made. JUDGE_STOP
// when the candidate fails.
MUST_CHECK int race_run(struct race *race, struct err *err);

// After a race of baseline and candidate: launches on contents that were never seen. A candidate
// that is much slower on those than on the repeated ones remembers answers: JUDGE_STOP,
// QUARANTINED.
MUST_CHECK int race_probe_fresh(struct race *race, struct err *err);

#endif
