// A block is void when the multiprocessor's clock was more than 1 % higher in one arm's launches than in
// the other's: the GPU changed its frequency in between.
#include "cuda/race.h"
#include <math.h>

#define CLOCKS_DIFFER 0.01
#define FRESH_NUMBER 100 // contents from here on are not used otherwise
#define FRESH_CONTENTS 2
#define FRESH_RATIO 1.5
#define FRESH_EXCESS_NS 3000.0
// Two loads of the same code differ by about so much of an empty window, one standard deviation
// (docs/measuring.md).
#define SYSTEMATIC_NS 12.0
// Times of launches come in humps about 160 ns apart, in steps of 32 ns; below SHORT_NS this is what
// most of their spread is.
#define SHORT_NS 100000.0
#define QUANTUM_NS 32.0

static int place(struct race_cuda *race, struct lane *lane, struct err *err)
{
    struct bench_trial *trial = lane->trial;

    return race->bench->placed == trial ? 0 : bench_place(race->bench, trial, race->arms, err);
}

static int run_block(void *owner, struct lane *lane, struct timing_block *block, struct err *err)
{
    static const unsigned char order[2][4] = {{0, 1, 1, 0}, {1, 0, 0, 1}};
    struct race_cuda *race = owner;
    const enum bench_arm arm[2] = {race->first, race->second};
    size_t done[2] = {0, 0};
    int status = place(race, lane, err);

    for (size_t i = 0; i < 4 && status == 0; i++) {
        size_t which = order[lane->phase][i];
        struct bench_time time;

        status = bench_launch(race->bench, lane->trial, arm[which], lane->slot, &time, err);
        if (status == 0) {
            block->cpu[which][done[which]] = time.ns;
            block->wall[which][done[which]++] = time.clock_hz;
        }
    }
    return status;
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
    return SYSTEMATIC_NS / contest_median(lane) / log(2);
}

int race_cuda_run(struct race_cuda *race, struct err *err)
{
    race->contest.owner = race;
    race->contest.run_block = run_block;
    race->contest.is_void = is_void;
    race->contest.systematic = systematic;
    race->contest.rng = &race->bench->rng;
    race->contest.slots = BENCH_SLOTS;
    race->contest.short_ns = SHORT_NS;
    race->contest.quantum_ns = QUANTUM_NS;
    return contest_run(&race->contest, err);
}

// The candidate's quickest launch on never-seen contents and the baseline's, and whether the candidate is
// slower there than its record says.
static int fresh_lane(struct race_cuda *race, struct lane *lane, struct err *err)
{
    struct bench_trial *trial = lane->trial;
    double least = INFINITY, usual = contest_second_median(lane), baseline_usual, baseline = 0;
    struct timing_block block;
    int status = place(race, lane, err);

    baseline_usual = contest_median(lane) * contest_median(lane) / usual;
    lane->slot = 0;
    for (uint64_t i = 0; i < FRESH_CONTENTS && status == 0; i++) {
        status = bench_renew(race->bench, trial, 0, FRESH_NUMBER + i, err);
        if (status == 0) {
            status = run_block(race, lane, &block, err);
        }
        if (status == 0) {
            least = fmin(least, fmin(block.cpu[1][0], block.cpu[1][1]));
            baseline = fmax(baseline, fmin(block.cpu[0][0], block.cpu[0][1]));
        }
    }
    if (status != 0) {
        return status;
    }
    usual *= fmax(baseline / baseline_usual, 1.0); // what the contents themselves change
    if (least > FRESH_RATIO * usual && least - usual > FRESH_EXCESS_NS) {
        return bench_stop(race->bench, VERDICT_QUARANTINED,
                          "the candidate is %.2f times slower on contents it has never seen than on "
                          "repeated ones, for %s",
                          least / usual, trial->name);
    }
    return 0;
}

int race_cuda_fresh(struct race_cuda *race, struct err *err)
{
    int status = 0;

    for (size_t i = 0; i < race->contest.lane_count && status == 0; i++) {
        status = fresh_lane(race, &race->contest.lane[i], err);
    }
    return status;
}
