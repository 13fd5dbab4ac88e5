// A paired timing between two arms over the benchmark cases of a problem: which block is run when, which
// count, when there are enough (executor/timing.h has the statistics), and how it is reported. Knows no
// device: whoever has one runs the blocks (executor/paired_run.c on a core, cuda/race.c on a GPU).
#ifndef EXECUTOR_PAIRED_TIMING_H
#define EXECUTOR_PAIRED_TIMING_H

#include "common/err.h"
#include "common/stats.h"
#include "executor/timing.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One benchmark case of a paired timing.
struct lane {
    void *trial; // the owner's: its case
    double weight;
    struct timing_series series;
    double first_ns[2 * TIMING_BLOCKS_MAX]; // times of the first arm's counted launches
    double second_ns[2 * TIMING_BLOCKS_MAX];
    size_t launch_count; // entries of each
    size_t attempts;     // blocks run, dropped and void ones included
    size_t voids;        // blocks that were disturbed
    bool disturbed;      // most blocks are void: they are counted from now on
    bool phase;          // of the superblock; false: ABBA
    size_t slot;         // its contents
    bool in_superblock;  // one has been started and is not full
    double spent_s;
    struct timing_estimate estimate;
};

struct paired_timing {
    // Set by the owner:
    void *owner;
    // Runs one block in the lane's phase and contents; may return HARNESS_STOP or an error.
    int (*run_block)(void *owner, struct lane *lane, struct timing_block *ret, struct err *err);
    // Whether the block was disturbed in one arm more than in the other.
    bool (*is_void)(void *owner, const struct timing_block *block);
    // Standard deviation, in log2, of what no number of blocks of this lane reduces.
    double (*systematic)(void *owner, const struct lane *lane);
    struct stats_rng *rng; // phase and contents
    size_t slots;          // contents to choose from
    double short_ns;   // launches below it are compared one by one (timing_of_launches); 0: none
    double quantum_ns; // steps of the clock
    struct timing_rule rule;
    double max_seconds; // over all lanes, shared by weight
    size_t looks;       // at most TIMING_LOOKS
    struct lane lane[PROBLEM_CASE_MAX];
    size_t lane_count;
    // What came of it:
    struct timing_estimate combined;
    bool capped;       // stopped by max_seconds
    uint64_t launches; // of the second arm, counted ones
};

// Runs until decided, capped or through all looks. What run_block returns when it is not 0 ends it.
MUST_CHECK int paired_timing_run(struct paired_timing *paired_timing, struct err *err);
// Geometric mean of the arms' median times of a lane.
double paired_timing_median(const struct lane *lane);
// Median time of the second arm's counted launches.
double paired_timing_second_median(const struct lane *lane);
// Whether most blocks of some lane were void.
bool paired_timing_disturbed(const struct paired_timing *paired_timing);

// For reports: malloc'd, finite.
struct estimate *paired_timing_estimate(const struct timing_estimate *estimate);
// Fills cases (names and floors are the caller's to add), speedup, quantiles and launches.
void paired_timing_describe(const struct paired_timing *paired_timing, struct result *result);

#endif
