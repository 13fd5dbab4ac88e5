// A superblock is eight blocks of the same phase (A B B A or B A A B) and the same contents, both
// drawn at random; the first block after a change of either is run but not counted. What one launch
// leaves behind in the caches for the next is then the same for both arms: in A B B A A B B A … each
// follows each equally often. (Contents drawn per block would put the change always into the first
// place.)
#include "executor/paired_timing.h"
#include "common/clock.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

#define BLOCKS_LEAST 3
#define OUTCOME_LOG2_MAX 64.0

static double now_s(void)
{
    return clock_seconds(clock_now_ns(&clock_system));
}

// Blocks that were disturbed in one arm more than in the other are repeated, as long as they are the
// smaller part.
static void count_block(struct paired_timing *paired_timing, struct lane *lane,
                        const struct timing_block *block)
{
    double ratio = timing_block_log2(block);

    if (isnan(ratio) || (!lane->disturbed && paired_timing->is_void(paired_timing->owner, block))) {
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
    paired_timing->launches += 2;
}

// Draws phase and contents of a superblock. Returns whether the next block follows a change and is
// not to be counted.
static bool start_superblock(struct paired_timing *paired_timing, struct lane *lane)
{
    bool phase = stats_rng_u64(paired_timing->rng) & 1;
    size_t slot = stats_rng_below(paired_timing->rng, paired_timing->slots);
    bool changed = lane->attempts == 0 || phase != lane->phase || slot != lane->slot;

    lane->phase = phase;
    lane->slot = slot;
    lane->in_superblock = true;
    return changed;
}

// Adds blocks to a lane until it has as many as the look needs, or its share of the time is used
// up. Whatever the cap, BLOCKS_LEAST are run: an estimate, however wide, is what a measurement owes.
static int run_lane(struct paired_timing *paired_timing, struct lane *lane, size_t blocks,
                    bool *ret_capped, struct err *err)
{
    double start = now_s(), budget = paired_timing->max_seconds * lane->weight - lane->spent_s;

    *ret_capped = false;
    int rc = 0;
    while (lane->series.count < blocks && rc == 0) {
        bool drop = !lane->in_superblock && start_superblock(paired_timing, lane);

        if (lane->series.count >= BLOCKS_LEAST && now_s() - start > budget) {
            *ret_capped = true;
            break;
        }
        struct timing_block block;
        rc = paired_timing->run_block(paired_timing->owner, lane, &block, err);
        lane->attempts++;
        if (rc == 0 && !drop) {
            count_block(paired_timing, lane, &block);
            lane->in_superblock = lane->series.count % TIMING_SUPERBLOCK != 0;
        }
    }
    lane->spent_s += now_s() - start;
    return rc;
}

static double median_of(const double *ns, size_t count)
{
    double copy[2 * TIMING_BLOCKS_MAX];

    memcpy(copy, ns, count * sizeof(double));
    return stats_median(copy, count);
}

double paired_timing_median(const struct lane *lane)
{
    return sqrt(median_of(lane->first_ns, lane->launch_count) *
                median_of(lane->second_ns, lane->launch_count));
}

double paired_timing_second_median(const struct lane *lane)
{
    return median_of(lane->second_ns, lane->launch_count);
}

static void estimate(struct paired_timing *paired_timing)
{
    struct timing_estimate each[PROBLEM_CASE_MAX];
    double weight[PROBLEM_CASE_MAX];

    for (size_t i = 0; i < paired_timing->lane_count; i++) {
        struct lane *lane = &paired_timing->lane[i];

        lane->series.systematic = paired_timing->systematic(paired_timing->owner, lane);
        lane->estimate =
            paired_timing_median(lane) < paired_timing->short_ns
                ? timing_of_launches(lane->first_ns, lane->second_ns, lane->launch_count,
                                     paired_timing->quantum_ns, lane->series.systematic)
                : timing_of(&lane->series);
        each[i] = lane->estimate;
        weight[i] = lane->weight;
    }
    paired_timing->combined = timing_combine(each, weight, paired_timing->lane_count);
}

int paired_timing_run(struct paired_timing *paired_timing, struct err *err)
{
    bool stop = false;

    for (size_t look = 0; look < paired_timing->looks && !stop; look++) {
        for (size_t i = 0; i < paired_timing->lane_count; i++) {
            bool capped;
            int rc = run_lane(paired_timing, &paired_timing->lane[i], timing_look_blocks(look),
                              &capped, err);

            if (rc != 0) {
                return rc;
            }
            paired_timing->capped |= capped;
        }
        estimate(paired_timing);
        stop =
            paired_timing->capped || timing_decided(&paired_timing->rule, &paired_timing->combined);
    }
    return 0;
}

bool paired_timing_disturbed(const struct paired_timing *paired_timing)
{
    for (size_t i = 0; i < paired_timing->lane_count; i++) {
        if (paired_timing->lane[i].disturbed) {
            return true;
        }
    }
    return false;
}

// ---- report ----

static double clamp_log2(double value)
{
    return isnan(value) ? 0 : fmin(fmax(value, -OUTCOME_LOG2_MAX), OUTCOME_LOG2_MAX);
}

struct estimate *paired_timing_estimate(const struct timing_estimate *estimate)
{
    struct estimate *ret = xcalloc(1, sizeof(*ret));

    timing_describe(estimate, ret);
    ret->log2 = clamp_log2(ret->log2);
    ret->lo = isnan(ret->lo) ? -OUTCOME_LOG2_MAX : clamp_log2(ret->lo);
    ret->hi = isnan(ret->hi) ? OUTCOME_LOG2_MAX : clamp_log2(ret->hi);
    return ret;
}

static struct quantiles *outcome_quantiles(const double *ns, size_t count)
{
    double sorted[2 * TIMING_BLOCKS_MAX];
    struct quantiles *ret = xcalloc(1, sizeof(*ret));

    memcpy(sorted, ns, count * sizeof(double));
    stats_sort(sorted, count);
    ret->p10 = stats_quantile(sorted, count, 0.1);
    ret->p50 = stats_quantile(sorted, count, 0.5);
    ret->p90 = stats_quantile(sorted, count, 0.9);
    return ret;
}

void paired_timing_describe(const struct paired_timing *paired_timing, struct result *result)
{
    const struct lane *first = &paired_timing->lane[0];

    result->cases = xcalloc(paired_timing->lane_count, sizeof(*result->cases));
    result->cases_count = paired_timing->lane_count;
    for (size_t i = 0; i < paired_timing->lane_count; i++) {
        const struct lane *lane = &paired_timing->lane[i];
        struct case_result *entry = &result->cases[i];

        message_init(&case_result_message, entry);
        entry->weight = lane->weight;
        entry->speedup = paired_timing_estimate(&lane->estimate);
        entry->baseline_ns = outcome_quantiles(lane->first_ns, lane->launch_count);
        entry->candidate_ns = outcome_quantiles(lane->second_ns, lane->launch_count);
    }
    result->speedup = paired_timing_estimate(&paired_timing->combined);
    result->baseline_ns = outcome_quantiles(first->first_ns, first->launch_count);
    result->candidate_ns = outcome_quantiles(first->second_ns, first->launch_count);
    result->launches = paired_timing->launches;
}
