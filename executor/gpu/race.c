// A block is void when the multiprocessor's clock was more than 1 % higher in one arm's launches than in
// the other's: the GPU changed its frequency in between.
#include "executor/gpu/race.h"
#include <math.h>

#define CLOCKS_DIFFER 0.01
#define FRESH_NUMBER 100 // contents from here on are not used otherwise
#define FRESH_CONTENTS 2
#define FRESH_RATIO 1.5
#define FRESH_EXCESS_NS 3000.0
// Two loads of the same code differ by about so much of an empty window, one standard deviation
// (docs/measuring.md).
#define SYSTEMATIC_NS 12.0
// Times of launches come in modes about 160 ns apart, in steps of 32 ns; below SHORT_NS this is what
// most of their spread is.
#define SHORT_NS 100000.0
#define QUANTUM_NS 32.0

static int place(struct paired_run_cuda *paired_run, struct lane *lane, struct err *err)
{
    struct bench_trial *trial = lane->trial;

    return paired_run->bench->placed == trial
               ? 0
               : bench_place(paired_run->bench, trial, paired_run->arms, err);
}

static int run_block(void *owner, struct lane *lane, struct timing_block *block, struct err *err)
{
    static const unsigned char order[2][4] = {{0, 1, 1, 0}, {1, 0, 0, 1}};
    struct paired_run_cuda *paired_run = owner;
    const enum bench_arm arm[2] = {paired_run->first, paired_run->second};
    size_t done[2] = {0, 0};
    int rc = place(paired_run, lane, err);

    for (size_t i = 0; i < 4 && rc == 0; i++) {
        size_t which = order[lane->phase][i];
        struct bench_time time;

        rc = bench_launch(paired_run->bench, lane->trial, arm[which], lane->slot, &time, err);
        if (rc == 0) {
            block->cpu[which][done[which]] = time.ns;
            block->wall[which][done[which]++] = time.clock_hz;
        }
    }
    return rc;
}

// Here the second reading of a launch is the clock frequency.
static bool is_void(void *owner, const struct timing_block *block)
{
    double first = block->wall[0][0] + block->wall[0][1];
    double second = block->wall[1][0] + block->wall[1][1];

    (void)owner;
    return !isnan(first + second) && fabs(log(first / second)) > CLOCKS_DIFFER;
}

static double systematic(void *owner, const struct lane *lane)
{
    (void)owner;
    return SYSTEMATIC_NS / paired_timing_median(lane) / log(2);
}

int paired_run_cuda_run(struct paired_run_cuda *paired_run, struct err *err)
{
    paired_run->paired_timing.owner = paired_run;
    paired_run->paired_timing.run_block = run_block;
    paired_run->paired_timing.is_void = is_void;
    paired_run->paired_timing.systematic = systematic;
    paired_run->paired_timing.rng = &paired_run->bench->rng;
    paired_run->paired_timing.slots = BENCH_SLOTS;
    paired_run->paired_timing.short_ns = SHORT_NS;
    paired_run->paired_timing.quantum_ns = QUANTUM_NS;
    return paired_timing_run(&paired_run->paired_timing, err);
}

// The candidate's quickest launch on never-seen contents and the baseline's, and whether the candidate is
// slower there than its record says.
static int fresh_lane(struct paired_run_cuda *paired_run, struct lane *lane, struct err *err)
{
    struct bench_trial *trial = lane->trial;
    double least = INFINITY, usual = paired_timing_second_median(lane), baseline_usual,
           baseline = 0;
    int rc = place(paired_run, lane, err);

    baseline_usual = paired_timing_median(lane) * paired_timing_median(lane) / usual;
    lane->slot = 0;
    struct timing_block block;
    for (uint64_t i = 0; i < FRESH_CONTENTS && rc == 0; i++) {
        rc = bench_renew(paired_run->bench, trial, 0, FRESH_NUMBER + i, err);
        if (rc == 0) {
            rc = run_block(paired_run, lane, &block, err);
        }
        if (rc == 0) {
            least = fmin(least, fmin(block.cpu[1][0], block.cpu[1][1]));
            baseline = fmax(baseline, fmin(block.cpu[0][0], block.cpu[0][1]));
        }
    }
    if (rc != 0) {
        return rc;
    }
    usual *= fmax(baseline / baseline_usual, 1.0); // what the contents themselves change
    if (least > FRESH_RATIO * usual && least - usual > FRESH_EXCESS_NS) {
        return bench_stop(
            paired_run->bench, VERDICT_QUARANTINED,
            "the candidate is %.2f times slower on contents it has never seen than on "
            "repeated ones, for %s",
            least / usual, trial->name);
    }
    return 0;
}

int paired_run_cuda_fresh(struct paired_run_cuda *paired_run, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < paired_run->paired_timing.lane_count && rc == 0; i++) {
        rc = fresh_lane(paired_run, &paired_run->paired_timing.lane[i], err);
    }
    return rc;
}
