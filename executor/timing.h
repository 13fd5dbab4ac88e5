// The statistics of interleaved timing: ABBA blocks of one benchmark case go in; an estimate of
// log2(baseline time / candidate time) with its interval and the decision to stop come out.
// executor/paired_timing.c calls this. It must know no process and no clock.
//
// Method (docs/measuring.md). A block is A B B A or B A A B. Its log ratio is d = ((ln A1 + ln A2)
// - (ln B1 + ln B2)) / 2 / ln 2, in which linear drift cancels. The estimator is the 20 % trimmed
// mean with Winsorised error and Student's t (Yuen 1974). For short launches it is the shift
// between the arms' times (Hodges and Lehmann 1963). The estimate is looked at after 8, 16, … 256
// blocks only, with a two-sided level of 0.05 / 6 at each look (Bonferroni), so that looking
// repeatedly does not raise the error rate. Cases that have next to none of the noise get no more
// from the third look on, roughly as in Neyman's allocation (1934). A clear loser is found before
// the first look: from three blocks of each case on, by what all cases say together at a level of
// 0.001. Of fewer than three blocks the noise is taken from within them, and only a candidate that
// is slower by a wide margin in each case is found by them.
#ifndef EXECUTOR_TIMING_H
#define EXECUTOR_TIMING_H

#include "proto/messages.h"
#include "proto/verdict.h"
#include <stdbool.h>
#include <stddef.h>

#define TIMING_LOOKS 6
#define TIMING_FIRST_LOOK 8 // blocks
#define TIMING_BLOCKS_MAX 256
#define TIMING_SUPERBLOCK 8 // blocks of one phase
#define TIMING_ALPHA 0.05
#define TIMING_TRIM 0.2
#define TIMING_CLOCKS_DIFFER 0.1 // largest difference of ln(wall / cpu) between the arms of a block
#define TIMING_VOID_SHARE 0.5    // with a larger share of void blocks nothing can be measured
#define TIMING_ESCAPED_SHARE 0.9 // of the blocks in which the clocks differ: the candidate's doing
#define TIMING_ESCAPED_LEAST 6   // blocks that show it
#define TIMING_PRECISION_LOG2 0.0036022 // log2(1.0025)
#define TIMING_LOSS_CASE_ALPHA 0.01     // level at which one case shows a loss by few blocks
#define TIMING_LOSS_ALPHA 0.001         // and all cases together
// Below the anchor by more than this, a candidate need not be known better than to the precision;
// and where that is certain, it has lost.
#define TIMING_BELOW_LOG2 0.0704           // log2(1.05)
#define TIMING_BELOW_PRECISION_LOG2 0.0144 // log2(1.01)
// The margin of a loss that is found by the noise within blocks (timing_of_pairs). What slows one
// arm for a whole block cannot be seen within it, but seldom comes to so much.
#define TIMING_FAR_BELOW_LOG2 0.5850 // log2(1.5)

// The blocks of one benchmark case.
struct timing_series {
    double d[TIMING_BLOCKS_MAX]; // log2(baseline / candidate) of each block, in order
    size_t count;
    double systematic; // standard deviation, in log2, between two processes with the same code: an
                       // error that more blocks do not reduce
};

// The duration of one timed launch.
struct launch_time {
    double cpu; // nanoseconds by the machine's clock for launches: processor time or GPU events
    // Shows that the launch was disturbed. On a core: its wall time in nanoseconds, less the time
    // for which it was ready to run and waited for the core. On a GPU: the clock frequency in Hz.
    double wall;
};

// Whether a block counts.
enum block_state {
    BLOCK_COUNTS,
    BLOCK_DISTURBED, // void: something has disturbed one arm more than the other
    BLOCK_ESCAPED,   // the second arm took wall time that its clock does not show
    BLOCK_UNLIKE,    // the arms ran at different clock frequencies, which `wall` holds
};

// The times of one block, in the units of struct launch_time. The first index is the arm
// (0 baseline, 1 candidate), the second the arm's first or second launch.
struct timing_block {
    double cpu[2][2];
    double wall[2][2];
};

struct timing_estimate {
    double log2;           // of the ratio baseline time / candidate time
    double standard_error; // infinite with fewer than two usable blocks
    double degrees;        // degrees of freedom
    double systematic;     // standard deviation of the error that more blocks do not reduce
    double lo, hi;         // interval at the level of one look: valid whichever look was the last
    size_t blocks;
};

struct timing_rule {
    double precision_log2; // half-width with which it is decided in any case
    double anchor_log2;    // what a search has to beat; NaN: no search asks. See timing_decided
};

// Returns the standard deviation, in log2, by which two processes with the same code differ in
// launches of this length. Part of the cost of an empty launch (overhead_ns) depends on where the
// kernel keeps a process in memory.
double timing_systematic(double overhead_ns, double launch_ns);
// Returns the number of blocks at a look, 0 <= look < TIMING_LOOKS.
size_t timing_look_blocks(size_t look);
// Returns how many looks fit into this many launches of each arm. At least 1; all looks when
// launches is 0.
size_t timing_looks(uint64_t launches);
// Returns the log2 ratio of one block, NaN unless all four times are positive.
double timing_block_log2(const struct timing_block *block);
// Compares how wall time and processor time disagree in the two arms. slack_ns is what a launch may
// need beyond its processor time, for waking up processes.
enum block_state timing_block_state(const struct timing_block *block, double slack_ns);
// Returns ln(wall / cpu) of the candidate minus that of the baseline. It is positive when the
// candidate's work escapes the processor clock.
double timing_block_escape(const struct timing_block *block, double slack_ns);
// Changes a block of state BLOCK_UNLIKE so that it can count: where the second arm had the higher
// clock, the first arm's times become what they would be at most at that clock, as if all of its
// work went by it. Nobody gains by slowing the other arm's clock; who slows its own has the time
// that it took.
void timing_block_make_alike(struct timing_block *block);
// Adds a block's ratio. A full series ignores it.
void timing_add(struct timing_series *series, double log2_ratio);
struct timing_estimate timing_of(const struct timing_series *series);
// Estimates the ratio from the launches of a few blocks, of which there are too few to tell the
// noise by how they differ. It is taken from within the blocks: from how much the two launches of
// an arm differ, with two degrees of freedom for a block. What a whole block shares is not in it;
// the interval is too narrow where there is such noise. Launches 2 i and 2 i + 1 of each arm, in
// nanoseconds, are those of block i. Infinite error when blocks is 0.
struct timing_estimate timing_of_pairs(const double *baseline_ns, const double *candidate_ns,
                                       size_t blocks, double systematic);
// Estimates from the times of single launches, `count` of each arm, in nanoseconds: from their
// shift (executor/multimodal.h), which is computed on the log scale where the arms differ much.
// Meant for launches so short that their times have several modes: a block's ratio then says more
// about which mode its four launches fell into than about the arms. Readings of a clock with steps
// of quantum_ns are spread over their step. Of more than 2 * TIMING_BLOCKS_MAX launches the first
// are used.
struct timing_estimate timing_of_launches(const double *baseline_ns, const double *candidate_ns,
                                          size_t count, double quantum_ns, double systematic);
// Returns the weighted mean of independent estimates, which is a weighted geometric mean of ratios.
// Its degrees of freedom follow Welch and Satterthwaite. The weights sum to 1.
struct timing_estimate timing_combine(const struct timing_estimate *estimate, const double *weight,
                                      size_t count);
// Returns the half-width below which no difference is looked for: the rule's precision, or what the
// systematic error allows if that is more.
double timing_precision(const struct timing_rule *rule, const struct timing_estimate *estimate);
// Whether the estimate shows at the level alpha that the candidate is slower by more than
// TIMING_BELOW_LOG2 than what it has to beat: the anchor, or without one the baseline. The estimate
// is that of blocks (timing_of, timing_of_pairs).
bool timing_is_loss(const struct timing_rule *rule, const struct timing_estimate *estimate,
                    double alpha);
// Whether it shows at the level alpha that the candidate is not slower by more than that.
bool timing_is_no_loss(const struct timing_rule *rule, const struct timing_estimate *estimate,
                       double alpha);
// Whether a ratio is below what the candidate has to beat by more than TIMING_BELOW_LOG2.
bool timing_is_below(const struct timing_rule *rule, double log2_ratio);
// The same by more than TIMING_FAR_BELOW_LOG2.
bool timing_is_far_below(const struct timing_rule *rule, double log2_ratio);
// Whether no further look is needed. The interval excludes 0, and with an anchor it lies above the
// anchor, or shows that it is not beaten by what counts as an improvement
// (IMPROVEMENT_MARGIN_LOG2); or it lies well below the anchor and is narrow; or it is a tie
// (verdict_is_tie); or it is as narrow as the precision.
bool timing_decided(const struct timing_rule *rule, const struct timing_estimate *estimate);
// Returns FASTER, SLOWER, EQUIVALENT or INCONCLUSIVE.
enum verdict timing_verdict(const struct timing_rule *rule, const struct timing_estimate *estimate);

#endif
