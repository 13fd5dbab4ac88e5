// Two arms timed against each other over the benchmark cases of a problem. This module decides
// which block runs when, which blocks count and when there are enough, and it describes the result;
// the statistics are executor/timing.h's. executor/comparison.c sets it up and runs the blocks. It
// must know neither arms nor machine.
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

struct measure_case;

// One benchmark case of a paired timing.
struct timed_case {
    const struct measure_case *of; // borrowed; for the owner
    double weight;                 // the weights of all cases sum to 1
    struct timing_series series;
    double first_ns[2 * TIMING_BLOCKS_MAX];  // times of the first arm's counted launches
    double second_ns[2 * TIMING_BLOCKS_MAX]; // and of the second arm's
    size_t launch_count;                     // entries of first_ns, and of second_ns
    size_t attempts;                         // blocks run, including those that are void
    size_t voids;                            // blocks of another state than BLOCK_COUNTS
    size_t escaped;                          // of these, blocks of state BLOCK_ESCAPED
    size_t unlike;                           // blocks of state BLOCK_UNLIKE
    size_t unlike_counted;                   // of these, blocks that count
    size_t timeless;                         // blocks with a launch of no time, by the clock
    bool disturbed;                          // most blocks are void: no more are run
    bool phase;         // order in the current superblock; false: ABBA, true: BAAB
    bool in_superblock; // a superblock has been started and is not complete
    uint64_t content;   // first content of the next block, which has two: each launched by each arm
    unsigned judge;     // bits of the second arm's launches that are judged in the block that runs
    bool any_judged;    // some launch has been judged
    double spent_s;     // seconds of its blocks
    bool ended_early;   // before the blocks of the first look: it seems to be a clear loser
    struct timing_estimate estimate;
};

struct paired_timing {
    // Set by the owner:
    void *owner;
    // Runs one block in the phase and with the contents that *timed names. What it returns when
    // that is not 0, MEASURE_STOP included, ends the paired timing, as it does for superblock.
    int (*run_block)(void *owner, struct timed_case *timed, struct timing_block *ret,
                     struct err *err);
    // Called before the first block of each superblock, to run the second half of a block, which
    // does not count, on the content that *timed names; and once more when the case has no more
    // blocks at this look (last), to run nothing.
    int (*superblock)(void *owner, struct timed_case *timed, bool last, struct err *err);
    // Whether the block counts.
    enum block_state (*block_state)(void *owner, const struct timing_block *block);
    // Returns the standard deviation, in log2, of the error that more blocks of this case do not
    // reduce.
    double (*systematic)(void *owner, const struct timed_case *timed);
    struct stats_rng *rng; // draws the phases, and the launches that are judged; borrowed
    const double *aside_s; // running sum of seconds that count against no limit; NULL: none
    double short_ns;   // launches below it are compared one by one (timing_of_launches); 0: never
    double quantum_ns; // step of the clock
    struct timing_rule rule;
    double max_seconds; // limit over all cases, divided by weight
    size_t looks;       // at most TIMING_LOOKS
    struct timed_case cases[PROBLEM_CASE_MAX];
    size_t case_count;
    // Results:
    struct timing_estimate combined; // over all cases
    bool capped;                     // stopped by max_seconds
    bool lost;                       // stopped before the first look: a clear loser
    uint64_t launches;               // counted launches of the second arm
};

// Runs blocks until the rule decides, before the first look or at one, the seconds are used up,
// most blocks of a case are void, or all looks are done. Returns 0, or what a callback returned.
// ERR_SYSTEM when the clock shows no time for most blocks.
MUST_CHECK int paired_timing_run(struct paired_timing *paired_timing, struct err *err);
// Returns the geometric mean of the two arms' median times, in nanoseconds.
double paired_timing_median(const struct timed_case *timed);
// Returns the median time of the second arm's counted launches, in nanoseconds.
double paired_timing_second_median(const struct timed_case *timed);
// The same of the first arm.
double paired_timing_first_median(const struct timed_case *timed);
// Returns the first case of which most blocks were void, NULL when there is none.
const struct timed_case *paired_timing_disturbed(const struct paired_timing *paired_timing);

// Returns the estimate as a message with finite numbers, malloc'd.
struct estimate *paired_timing_estimate(const struct timing_estimate *estimate);
// Fills cases, speedup, quantiles and launches of the result. The caller adds the cases' names and
// floors.
void paired_timing_describe(const struct paired_timing *paired_timing, struct result *result);

#endif
