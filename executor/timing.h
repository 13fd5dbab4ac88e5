// The statistics of interleaved timing, without processes or clocks: ABBA blocks of one benchmark
// case go in, an estimate of log2(baseline time / candidate time) with its interval comes out, and
// the rule when to stop.
//
// Method: docs/measuring.md. A block is A B B A (or B A A B), d = ((ln A1 + ln A2) - (ln B1 + ln
// B2)) / 2 / ln 2: linear drift cancels. The estimator is the 20 % trimmed mean with Winsorised
// error and Student's t (Yuen 1974), and for short launches the shift between the arms' times (Hodges
// and Lehmann 1963). Looks at 8, 16, … 256 blocks only, two-sided 0.05 / 6 at each
// (Bonferroni), so that looking repeatedly does not raise the error rate.
#ifndef EXECUTOR_TIMING_H
#define EXECUTOR_TIMING_H

#include "proto/messages.h"
#include "proto/verdict.h"
#include <stdbool.h>
#include <stddef.h>

#define TIMING_LOOKS 6
#define TIMING_FIRST_LOOK 8
#define TIMING_BLOCKS_MAX 256
#define TIMING_SUPERBLOCK 8
#define TIMING_ALPHA 0.05
#define TIMING_TRIM 0.2
#define TIMING_CLOCKS_DIFFER 0.1 // void a block when ln(wall / cpu) of the arms differs by more
#define TIMING_VOID_SHARE 0.5    // more void blocks than this share: the core is not ours
#define TIMING_PRECISION_LOG2 0.0036022 // log2(1.0025)

// Blocks of one benchmark case.
struct timing_series {
    double d[TIMING_BLOCKS_MAX]; // log2(baseline / candidate) per block, in order
    size_t count;
    double systematic; // log2; what two processes with the same code differ by: an error that more
                       // blocks do not reduce
};

// What one timed launch took.
struct launch_time {
    double
        cpu; // nanoseconds by the machine's clock for launches: processor time, or that of events
    double
        wall; // what tells that the launch was disturbed: wall time in nanoseconds on a core, the
              // clock frequency in Hz on a GPU
};

// The two arms' times of one block in nanoseconds, in launch order: baseline 0, 1 and candidate
// 0, 1.
struct timing_block {
    double cpu[2][2]; // [0 baseline, 1 candidate][first, second]
    double wall[2][2];
};

struct timing_estimate {
    double log2;           // of the ratio
    double standard_error; // infinite below two usable blocks
    double degrees;        // of freedom
    double systematic;     // standard deviation of what no number of blocks reduces
    double lo, hi;         // interval at the level of one look: valid whichever look stopped
    size_t blocks;
};

struct timing_rule {
    double precision_log2; // EQUIVALENT when the half-width is at most this
    double anchor_log2;    // the interval must exclude it too before stopping; NaN: none
};

// The standard deviation, in log2, by which two processes with the same code differ in launches of
// this length: part of what a launch costs without the entry (overhead_ns) depends on where the
// kernel keeps a process in memory.
double timing_systematic(double overhead_ns, double launch_ns);
// Number of blocks at a look, 0 <= look < TIMING_LOOKS.
size_t timing_look_blocks(size_t look);
// The looks of which the last needs at most so many launches of each arm; 0: all, always one.
size_t timing_looks(uint64_t launches);
// log2 ratio of one block. NaN unless all four times are positive.
double timing_block_log2(const struct timing_block *block);
// Whether processor time and wall time tell different stories about the arms. slack_ns is what a
// launch may need beyond its processor time (the wake-ups).
bool timing_block_void(const struct timing_block *block, double slack_ns);
// ln(wall / cpu) of the candidate less that of the baseline: positive when the candidate's time
// escapes the processor clock.
double timing_block_escape(const struct timing_block *block, double slack_ns);
void timing_add(struct timing_series *series, double log2_ratio);
struct timing_estimate timing_of(const struct timing_series *series);
// The same from the times of single launches, `count` of each arm, in nanoseconds: their shift
// (exec/modes.h; on the log scale where the arms differ much). For launches that are so short that
// their times come in modes: a block's ratio then says more about which mode its four launches fell
// into than about the arms. Times that a clock gives in steps of quantum_ns are spread over their
// step. Of more than 2 * TIMING_BLOCKS_MAX launches the first are compared.
struct timing_estimate timing_of_launches(const double *baseline_ns, const double *candidate_ns,
                                          size_t count, double quantum_ns, double systematic);
// Weighted mean of independent estimates (a weighted geometric mean of ratios); degrees by Welch
// and Satterthwaite. weight sums to 1.
struct timing_estimate timing_combine(const struct timing_estimate *estimate, const double *weight,
                                      size_t count);
// The half-width below which a difference is not looked for: the rule's precision, or what the
// systematic error leaves.
double timing_precision(const struct timing_rule *rule, const struct timing_estimate *estimate);
// Whether no further look is needed.
bool timing_decided(const struct timing_rule *rule, const struct timing_estimate *estimate);
// FASTER, SLOWER, EQUIVALENT or INCONCLUSIVE.
enum verdict timing_verdict(const struct timing_rule *rule, const struct timing_estimate *estimate);
// The estimate as it is reported.
void timing_describe(const struct timing_estimate *estimate, struct estimate *ret);

#endif
