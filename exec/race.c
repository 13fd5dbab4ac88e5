// A superblock is eight blocks of the same phase (A B B A or B A A B) and the same of two contents,
// both drawn at random; the first block after a change of either is run but not counted. What one
// launch leaves behind in the caches for the next is then the same for both arms: in A B B A A B B
// A … each follows each equally often. (Contents drawn per block would put the change always into
// the first place.)
#include "exec/race.h"
#include "common/clock.h"
#include <math.h>
#include <string.h>

#define BLOCKS_LEAST 3
#define FRESH_MAX 9
#define FRESH_RATIO 1.5
#define FRESH_EXCESS_NS 3000.0
#define FRESH_SECONDS 0.02
#define SLACK_NS 5000.0

static double now_s(void)
{
    return clock_seconds(clock_now_ns(&clock_system));
}

// What a launch's wall time may exceed its processor time by when nothing is wrong.
static double slack_ns(const struct race *race)
{
    return 3 * race->judge->wake_ns + SLACK_NS;
}

static int run_block(struct race *race, struct lane *lane, struct timing_block *block,
                     struct err *err)
{
    static const unsigned char order[2][4] = {{0, 1, 1, 0}, {1, 0, 0, 1}};
    enum arm_index arm[2] = {race->first, race->second};
    struct launch_time time[2][2];
    size_t done[2] = {0, 0};
    int status = 0;

    for (size_t i = 0; i < 4 && status == 0; i++) {
        size_t which = order[lane->phase][i];
        status = judge_launch(race->judge, arm[which], lane->trial, lane->slot,
                              &time[which][done[which]], err);
        done[which]++;
    }
    arm_settle(&race->judge->arm[race->first]);
    arm_settle(&race->judge->arm[race->second]);
    if (status != 0) {
        return status;
    }
    for (size_t which = 0; which < 2; which++) {
        for (size_t i = 0; i < 2; i++) {
            block->cpu[which][i] = time[which][i].cpu;
            block->wall[which][i] = time[which][i].wall;
        }
    }
    return 0;
}

// The processor clock does not count what other programs do on this core, so that a disturbed
// launch is nearly as good as any. Blocks that were disturbed in one arm more than in the other are
// repeated nevertheless, as long as they are the smaller part. (A candidate that hides time from
// the clock would have to sleep while somebody else works for it: the sandbox leaves it neither.)
static void count_block(struct race *race, struct lane *lane, const struct timing_block *block)
{
    double slack = slack_ns(race), ratio = timing_block_log2(block);

    if (isnan(ratio) || (timing_block_void(block, slack) && !lane->disturbed)) {
        lane->voids++;
        lane->disturbed =
            (double)lane->voids > TIMING_FIRST_LOOK + TIMING_VOID_SHARE * (double)lane->attempts;
        return;
    }
    timing_add(&lane->series, ratio);
    for (size_t i = 0; i < 2; i++) {
        lane->first_ns[lane->launch_count] = block->cpu[0][i];
        lane->second_ns[lane->launch_count++] = block->cpu[1][i];
    }
    race->launches += 2;
}

// Draws phase and contents of a superblock. Returns whether the next block follows a change and is
// not to be counted.
static bool start_superblock(struct race *race, struct lane *lane)
{
    bool phase = stats_rng_u64(&race->judge->rng) & 1;
    size_t slot = stats_rng_below(&race->judge->rng, TRIAL_CONTENTS);
    bool changed = lane->attempts == 0 || phase != lane->phase || slot != lane->slot;

    lane->phase = phase;
    lane->slot = slot;
    lane->in_superblock = true;
    return changed;
}

// Adds blocks to a lane until it has as many as the look needs, or its share of the time is used
// up. Whatever the cap, BLOCKS_LEAST are run: an estimate, however wide, is what a measurement owes.
static int run_lane(struct race *race, struct lane *lane, size_t blocks, bool *ret_capped,
                    struct err *err)
{
    double start = now_s(), budget = race->max_seconds * lane->weight - lane->spent_s;
    int status = 0;

    *ret_capped = false;
    while (lane->series.count < blocks && status == 0) {
        struct timing_block block;
        bool drop = !lane->in_superblock && start_superblock(race, lane);

        if (lane->series.count >= BLOCKS_LEAST && now_s() - start > budget) {
            *ret_capped = true;
            break;
        }
        status = run_block(race, lane, &block, err);
        lane->attempts++;
        if (status == 0 && !drop) {
            count_block(race, lane, &block);
            lane->in_superblock = lane->series.count % TIMING_SUPERBLOCK != 0;
        }
    }
    lane->spent_s += now_s() - start;
    return status;
}

// Geometric mean of the arms' median times.
static double median_launch(const struct lane *lane)
{
    double first[2 * TIMING_BLOCKS_MAX], second[2 * TIMING_BLOCKS_MAX];

    memcpy(first, lane->first_ns, lane->launch_count * sizeof(double));
    memcpy(second, lane->second_ns, lane->launch_count * sizeof(double));
    return sqrt(stats_median(first, lane->launch_count) * stats_median(second, lane->launch_count));
}

static void estimate(struct race *race)
{
    struct timing_estimate each[PROBLEM_CASE_MAX];
    double weight[PROBLEM_CASE_MAX];

    for (size_t i = 0; i < race->lane_count; i++) {
        struct lane *lane = &race->lane[i];
        lane->series.systematic = timing_systematic(race->judge->overhead_ns, median_launch(lane));
        each[i] = race->lane[i].estimate = timing_of(&race->lane[i].series);
        weight[i] = race->lane[i].weight;
    }
    race->combined = timing_combine(each, weight, race->lane_count);
}

int race_run(struct race *race, struct err *err)
{
    int status = 0;
    bool stop = false;

    for (size_t look = 0; look < race->looks && !stop; look++) {
        for (size_t i = 0; i < race->lane_count; i++) {
            bool capped;
            status = run_lane(race, &race->lane[i], timing_look_blocks(look), &capped, err);
            if (status != 0) {
                return status;
            }
            race->capped |= capped;
        }
        estimate(race);
        stop = race->capped || timing_decided(&race->rule, &race->combined);
    }
    return status;
}

// ---- never-seen contents ----

struct fresh {
    double never_seen_ns[FRESH_MAX];  // the candidate's launches on each content
    double repeated_ns[FRESH_MAX];    // and on a repeated one just before
    double baseline_ratio[FRESH_MAX]; // the baseline's never seen / repeated: what the contents
                                      // themselves change
    size_t count;
};

// Whether the quickest launch on never-seen contents is still clearly slower than the usual one on
// repeated contents. The quickest: other programs on this core make launches slower, never faster,
// and who remembers answers is slow on every new content.
static bool fresh_is_slower(const struct fresh *fresh, double *ret_ratio)
{
    double repeated[FRESH_MAX], baseline[FRESH_MAX], least = INFINITY, usual;

    memcpy(repeated, fresh->repeated_ns, sizeof(repeated));
    memcpy(baseline, fresh->baseline_ratio, sizeof(baseline));
    for (size_t i = 0; i < fresh->count; i++) {
        least = fmin(least, fresh->never_seen_ns[i]);
    }
    usual = stats_median(repeated, fresh->count) * fmax(stats_median(baseline, fresh->count), 1.0);
    *ret_ratio = least / usual;
    return least > FRESH_RATIO * usual && least - usual > FRESH_EXCESS_NS;
}

static int launch_pair(struct race *race, struct lane *lane, struct trial *fresh,
                       enum arm_index arm, double ret_ns[2], struct err *err)
{
    struct launch_time repeated, never_seen;
    int status = judge_launch(race->judge, arm, lane->trial, 0, NULL, err);

    if (status == 0) {
        status = judge_launch(race->judge, arm, lane->trial, 0, &repeated, err);
    }
    if (status == 0) {
        // The same case at the same addresses, other contents.
        status = judge_launch(race->judge, arm, fresh, 0, &never_seen, err);
    }
    arm_settle(&race->judge->arm[arm]);
    if (status == 0) {
        ret_ns[0] = repeated.cpu;
        ret_ns[1] = never_seen.cpu;
    }
    return status;
}

static int fresh_round(struct race *race, struct lane *lane, struct fresh *fresh, struct err *err)
{
    struct trial trial;
    double candidate[2], baseline[2];
    int status = judge_trial_init(race->judge, &trial, lane->trial->shape, lane->trial->index, err);

    if (status == 0) {
        status = judge_content_make(race->judge, &trial, 0, TRIAL_CONTENTS + fresh->count, err);
    }
    if (status == 0) {
        status = launch_pair(race, lane, &trial, race->second, candidate, err);
    }
    if (status == 0) {
        status = launch_pair(race, lane, &trial, race->first, baseline, err);
    }
    race->judge->placed = NULL;
    judge_trial_release(&trial);
    if (status == 0) {
        fresh->repeated_ns[fresh->count] = candidate[0];
        fresh->never_seen_ns[fresh->count] = candidate[1];
        fresh->baseline_ratio[fresh->count++] = baseline[1] / baseline[0];
    }
    return status;
}

int race_probe_fresh(struct race *race, struct err *err)
{
    int status = 0;

    for (size_t i = 0; i < race->lane_count && status == 0; i++) {
        struct lane *lane = &race->lane[i];
        struct fresh fresh = {.count = 0};
        double start = now_s(), ratio = 0;
        bool suspicious = false;

        // One content costs a run of the reference; more are spent where they are cheap, and on who
        // looks suspicious.
        while (fresh.count < FRESH_MAX && status == 0 &&
               (fresh.count == 0 || suspicious || now_s() - start < FRESH_SECONDS * lane->weight)) {
            status = fresh_round(race, lane, &fresh, err);
            suspicious = status == 0 && fresh_is_slower(&fresh, &ratio);
        }
        if (status == 0 && suspicious) {
            status = judge_stop(race->judge, VERDICT_QUARANTINED,
                                "the candidate is %.2f times slower on contents it has never seen "
                                "than on repeated ones, for %s",
                                ratio, lane->trial->name);
        }
    }
    return status;
}
