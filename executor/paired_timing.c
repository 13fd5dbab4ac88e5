// A superblock is eight blocks of the same phase (A B B A or B A A B) and the same content, both
// drawn at random. The first block after a change of either runs and does not count. What one
// launch leaves in the caches for the next is then the same for both arms, because in A B B A A B B
// A … each arm follows each arm equally often. If the content were drawn for each block, the change
// would always fall on the block's first launch.
#include "executor/paired_timing.h"
#include "common/clock.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

#define BLOCKS_LEAST 3        // run for each case whatever the limit of seconds
#define OUTCOME_LOG2_MAX 64.0 // larger ratios are reported as this

static double now_s(void)
{
    return clock_seconds(clock_now_ns(&clock_system));
}

// Adds a block to its case. A block that was disturbed in one arm more than in the other does not
// count and is repeated, as long as such blocks are not the majority.
static void count_block(struct paired_timing *paired_timing, struct timed_case *timed,
                        const struct timing_block *block)
{
    double ratio = timing_block_log2(block);

    timed->timeless += isnan(ratio);
    if (isnan(ratio) ||
        (!timed->disturbed && paired_timing->is_void(paired_timing->owner, block))) {
        timed->voids++;
        timed->disturbed =
            (double)timed->voids > TIMING_FIRST_LOOK + TIMING_VOID_SHARE * (double)timed->attempts;
        return;
    }
    timing_add(&timed->series, ratio);
    for (size_t i = 0; i < 2; i++) {
        timed->first_ns[timed->launch_count] = block->cpu[0][i];
        timed->second_ns[timed->launch_count++] = block->cpu[1][i];
    }
    paired_timing->launches += 2;
}

// Blocks without a time never count, so most blocks must not be such: otherwise the blocks that the
// look needs would never be there.
static int check_clock(const struct timed_case *timed, struct err *err)
{
    double most = TIMING_FIRST_LOOK + TIMING_VOID_SHARE * (double)timed->attempts;

    return (double)timed->timeless <= most
               ? 0
               : err_set(err, ERR_SYSTEM,
                         "the clock shows no time for launches in %zu of %zu blocks",
                         timed->timeless, timed->attempts);
}

// Draws phase and content of a superblock. Returns whether either has changed, so that the next
// block must not count.
static bool start_superblock(struct paired_timing *paired_timing, struct timed_case *timed)
{
    bool phase = stats_rng_u64(paired_timing->rng) & 1;
    size_t slot = stats_rng_below(paired_timing->rng, paired_timing->slots);
    bool changed = timed->attempts == 0 || phase != timed->phase || slot != timed->slot;

    timed->phase = phase;
    timed->slot = slot;
    timed->in_superblock = true;
    return changed;
}

// Adds blocks to a case until it has as many as the look needs or its share of the seconds is used
// up. BLOCKS_LEAST are run in any case, so that there is an estimate, however wide.
static int run_case(struct paired_timing *paired_timing, struct timed_case *timed, size_t blocks,
                    bool *ret_capped, struct err *err)
{
    double start = now_s(), budget = paired_timing->max_seconds * timed->weight - timed->spent_s;

    *ret_capped = false;
    int rc = 0;
    while (timed->series.count < blocks && rc == 0) {
        bool drop = !timed->in_superblock && start_superblock(paired_timing, timed);

        if (timed->series.count >= BLOCKS_LEAST && now_s() - start > budget) {
            *ret_capped = true;
            break;
        }
        struct timing_block block;
        rc = paired_timing->run_block(paired_timing->owner, timed, &block, err);
        timed->attempts++;
        if (rc == 0 && !drop) {
            size_t before = timed->series.count;

            count_block(paired_timing, timed, &block);
            timed->in_superblock =
                timed->series.count == before || timed->series.count % TIMING_SUPERBLOCK != 0;
            rc = check_clock(timed, err);
        }
    }
    timed->spent_s += now_s() - start;
    return rc;
}

static double median_of(const double *ns, size_t count)
{
    double copy[2 * TIMING_BLOCKS_MAX];

    memcpy(copy, ns, count * sizeof(double));
    return stats_median(copy, count);
}

double paired_timing_median(const struct timed_case *timed)
{
    return sqrt(median_of(timed->first_ns, timed->launch_count) *
                median_of(timed->second_ns, timed->launch_count));
}

double paired_timing_second_median(const struct timed_case *timed)
{
    return median_of(timed->second_ns, timed->launch_count);
}

static void estimate(struct paired_timing *paired_timing)
{
    struct timing_estimate each[PROBLEM_CASE_MAX];
    double weight[PROBLEM_CASE_MAX];

    for (size_t i = 0; i < paired_timing->case_count; i++) {
        struct timed_case *timed = &paired_timing->cases[i];

        timed->series.systematic = paired_timing->systematic(paired_timing->owner, timed);
        timed->estimate =
            paired_timing_median(timed) < paired_timing->short_ns
                ? timing_of_launches(timed->first_ns, timed->second_ns, timed->launch_count,
                                     paired_timing->quantum_ns, timed->series.systematic)
                : timing_of(&timed->series);
        each[i] = timed->estimate;
        weight[i] = timed->weight;
    }
    paired_timing->combined = timing_combine(each, weight, paired_timing->case_count);
}

int paired_timing_run(struct paired_timing *paired_timing, struct err *err)
{
    bool stop = false;

    for (size_t look = 0; look < paired_timing->looks && !stop; look++) {
        for (size_t i = 0; i < paired_timing->case_count; i++) {
            bool capped;
            int rc = run_case(paired_timing, &paired_timing->cases[i], timing_look_blocks(look),
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
    for (size_t i = 0; i < paired_timing->case_count; i++) {
        if (paired_timing->cases[i].disturbed) {
            return true;
        }
    }
    return false;
}

// ---- result ----

static double clamp_log2(double value)
{
    return isnan(value) ? 0 : fmin(fmax(value, -OUTCOME_LOG2_MAX), OUTCOME_LOG2_MAX);
}

struct estimate *paired_timing_estimate(const struct timing_estimate *estimate)
{
    struct estimate *ret = xcalloc(1, sizeof(*ret));

    ret->log2 = clamp_log2(estimate->log2);
    ret->lo = isnan(estimate->lo) ? -OUTCOME_LOG2_MAX : clamp_log2(estimate->lo);
    ret->hi = isnan(estimate->hi) ? OUTCOME_LOG2_MAX : clamp_log2(estimate->hi);
    ret->blocks = estimate->blocks;
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
    const struct timed_case *first = &paired_timing->cases[0];

    result->cases = xcalloc(paired_timing->case_count, sizeof(*result->cases));
    result->cases_count = paired_timing->case_count;
    for (size_t i = 0; i < paired_timing->case_count; i++) {
        const struct timed_case *timed = &paired_timing->cases[i];
        struct case_result *entry = &result->cases[i];

        message_init(&case_result_message, entry);
        entry->weight = timed->weight;
        entry->speedup = paired_timing_estimate(&timed->estimate);
        entry->baseline_ns = outcome_quantiles(timed->first_ns, timed->launch_count);
        entry->candidate_ns = outcome_quantiles(timed->second_ns, timed->launch_count);
    }
    result->speedup = paired_timing_estimate(&paired_timing->combined);
    result->baseline_ns = outcome_quantiles(first->first_ns, first->launch_count);
    result->candidate_ns = outcome_quantiles(first->second_ns, first->launch_count);
    result->launches = paired_timing->launches;
}
