// Timed launches: two arms against each other over the benchmark cases, in ABBA blocks
// (exec/timing.h), every launch verified.
#ifndef EXEC_RACE_H
#define EXEC_RACE_H

#include "exec/judge.h"
#include "exec/timing.h"

// One benchmark case of a race.
struct lane {
    struct trial *trial;
    double weight;
    struct timing_series series;
    double first_ns[2 * TIMING_BLOCKS_MAX]; // times of the first arm's counted launches
    double second_ns[2 * TIMING_BLOCKS_MAX];
    size_t launch_count; // entries of each
    size_t attempts;     // blocks run, dropped and void ones included
    size_t voids;        // blocks whose clocks disagreed
    bool disturbed;      // most blocks are void: they are counted from now on
    bool phase;          // of the superblock; false: ABBA
    size_t slot;         // its contents
    bool in_superblock;  // one has been started and is not full
    double spent_s;
    struct timing_estimate estimate;
};

struct race {
    struct judge *judge;
    enum arm_index first, second; // ratio: time of first / time of second
    struct timing_rule rule;
    double max_seconds; // over all lanes, shared by weight
    size_t looks;       // at most TIMING_LOOKS
    struct lane lane[PROBLEM_CASE_MAX];
    size_t lane_count;
    struct timing_estimate combined;
    bool capped;       // stopped by max_seconds
    uint64_t launches; // of the second arm, counted ones
};

// Runs until decided, capped or through all looks. trial contents 0 and 1 must be made. JUDGE_STOP
// when the candidate fails.
MUST_CHECK int race_run(struct race *race, struct err *err);

// After a race of baseline and candidate: launches on contents that were never seen. A candidate
// that is much slower on those than on the repeated ones remembers answers: JUDGE_STOP,
// QUARANTINED.
MUST_CHECK int race_probe_fresh(struct race *race, struct err *err);

#endif
