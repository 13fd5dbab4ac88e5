// A superblock is eight blocks of the same phase (A B B A or B A A B), which is drawn at random.
// Before them one more block runs that does not count. What one launch leaves in the caches for the
// next is then the same for both arms, because in A B B A A B B A … each arm follows each arm
// equally often. No launch has contents that its arm has had before: a block has two contents, one
// for its first A and B and one for its second, so each arm is first on a content equally often.
#include "executor/paired_timing.h"
#include "common/clock.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

#define BLOCKS_LEAST 3 // run for each case whatever the limit of seconds
#define LOSS_BLOCKS 3  // blocks from which on it is seen whether the second arm is a clear loser
// One in so many launches is judged: of the first superblock of a case, and of later ones.
#define JUDGED_FIRST 3.2
#define JUDGED_LATER 12.0
#define OUTCOME_LOG2_MAX 64.0 // larger ratios are reported as this

static double now_s(void)
{
    return clock_seconds(clock_now_ns(&clock_system));
}

// Returns the time from which a limit of seconds counts.
static double timing_s(const struct paired_timing *paired_timing)
{
    return now_s() - (paired_timing->aside_s ? *paired_timing->aside_s : 0);
}

// Whether the block is repeated. Blocks in which the second arm's time escaped its clock are
// excused as long as they are no more than those in which the first arm's did: so many are the
// machine's doing. The others count, by the time that the second arm took by the wall clock. So
// nobody can have a block taken out that went badly.
static bool is_void(struct timed_case *timed, enum block_state state)
{
    if (state == BLOCK_COUNTS) {
        return false;
    }
    size_t disturbed = timed->voids - timed->escaped;
    timed->voids++;
    timed->escaped += state == BLOCK_ESCAPED;
    timed->disturbed =
        (double)timed->voids > TIMING_FIRST_LOOK + TIMING_VOID_SHARE * (double)timed->attempts;
    return state == BLOCK_DISTURBED || timed->escaped <= disturbed;
}

// Adds a block to its case. A void block does not count and is repeated, until such blocks are the
// majority.
static void count_block(struct paired_timing *paired_timing, struct timed_case *timed,
                        const struct timing_block *block)
{
    double ratio = timing_block_log2(block);

    enum block_state state =
        isnan(ratio) ? BLOCK_DISTURBED : paired_timing->block_state(paired_timing->owner, block);

    timed->timeless += isnan(ratio);
    if (is_void(timed, state)) {
        return;
    }
    struct timing_block counted = *block;
    if (state == BLOCK_ESCAPED) {
        memcpy(counted.cpu[1], block->wall[1], sizeof(counted.cpu[1]));
    }
    timing_add(&timed->series, timing_block_log2(&counted));
    for (size_t i = 0; i < 2; i++) {
        timed->first_ns[timed->launch_count] = counted.cpu[0][i];
        timed->second_ns[timed->launch_count++] = counted.cpu[1][i];
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

// Draws which launches of the second arm are judged in the block that comes after `before` counted
// ones. Each is drawn by itself: the time that judging takes shows afterwards which were, and must
// say nothing about others. Of a case's first superblock at least one is judged.
static unsigned draw_judged(struct stats_rng *rng, struct timed_case *timed, size_t before)
{
    bool early = before < TIMING_SUPERBLOCK;
    unsigned judged = 0;

    for (unsigned i = 0; i < 2; i++) {
        double one_in = early ? JUDGED_FIRST : JUDGED_LATER;
        judged |= (unsigned)(stats_rng_unit(rng) * one_in < 1) << i;
    }
    timed->any_judged = timed->any_judged || judged != 0;
    if (before + 1 == TIMING_SUPERBLOCK && !timed->any_judged) {
        judged = 1u << stats_rng_below(rng, 2);
    }
    return judged;
}

static int start_superblock(struct paired_timing *paired_timing, struct timed_case *timed,
                            struct err *err)
{
    timed->phase = stats_rng_u64(paired_timing->rng) & 1;
    timed->in_superblock = true;
    return paired_timing->superblock(paired_timing->owner, timed, false, err);
}

// Runs one block. The first block of a superblock does not count.
static int run_one(struct paired_timing *paired_timing, struct timed_case *timed, struct err *err)
{
    bool first = !timed->in_superblock;
    int rc = first ? start_superblock(paired_timing, timed, err) : 0;

    if (rc != 0) {
        return rc;
    }
    size_t before = timed->series.count;
    timed->judge = first ? 0 : draw_judged(paired_timing->rng, timed, before);
    struct timing_block block;
    rc = paired_timing->run_block(paired_timing->owner, timed, &block, err);
    timed->attempts++;
    timed->content += 2;
    if (rc != 0 || first) {
        return rc;
    }
    count_block(paired_timing, timed, &block);
    timed->in_superblock =
        timed->series.count == before || timed->series.count % TIMING_SUPERBLOCK != 0;
    return check_clock(timed, err);
}

static struct timing_estimate estimate_blocks(struct paired_timing *paired_timing,
                                              struct timed_case *timed)
{
    timed->series.systematic = paired_timing->systematic(paired_timing->owner, timed);
    return timing_of(&timed->series);
}

// Whether the blocks of this case so far show that the second arm is a clear loser.
static bool is_lost(struct paired_timing *paired_timing, struct timed_case *timed)
{
    // Whoever hides time has not lost by it, but is found out.
    if (timed->series.count < LOSS_BLOCKS || timed->escaped > 0) {
        return false;
    }
    struct timing_estimate estimate = estimate_blocks(paired_timing, timed);
    return timing_is_loss(&paired_timing->rule, &estimate, TIMING_LOSS_CASE_ALPHA);
}

// Adds blocks to a case until it has as many as the look needs or its share of the seconds is used
// up. BLOCKS_LEAST are run in any case, so that there is an estimate, however wide. With `early`,
// it also stops as soon as the blocks show that the second arm is a clear loser.
static int run_case(struct paired_timing *paired_timing, struct timed_case *timed, size_t blocks,
                    bool early, bool *ret_capped, struct err *err)
{
    double timing = timing_s(paired_timing);
    double budget = paired_timing->max_seconds * timed->weight - timed->spent_s;
    bool ran = false;

    *ret_capped = false;
    int rc = 0;
    timed->lost = false;
    while (timed->series.count < blocks && rc == 0 && !timed->disturbed && !timed->lost) {
        if (timed->series.count >= BLOCKS_LEAST && timing_s(paired_timing) - timing > budget) {
            *ret_capped = true;
            break;
        }
        rc = run_one(paired_timing, timed, err);
        ran = true;
        timed->lost = rc == 0 && early && is_lost(paired_timing, timed);
    }
    if (rc == 0 && ran) {
        rc = paired_timing->superblock(paired_timing->owner, timed, true, err);
        timed->in_superblock = false;
    }
    timed->spent_s += timing_s(paired_timing) - timing;
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

double paired_timing_first_median(const struct timed_case *timed)
{
    return median_of(timed->first_ns, timed->launch_count);
}

// Short launches of a case that has ended as lost are not compared one by one, since the arms
// differ by far more than what that is for, and there are few of them.
static void estimate(struct paired_timing *paired_timing)
{
    struct timing_estimate each[PROBLEM_CASE_MAX];
    double weight[PROBLEM_CASE_MAX];

    for (size_t i = 0; i < paired_timing->case_count; i++) {
        struct timed_case *timed = &paired_timing->cases[i];

        timed->estimate = estimate_blocks(paired_timing, timed);
        if (!timed->lost && paired_timing_median(timed) < paired_timing->short_ns) {
            timed->estimate =
                timing_of_launches(timed->first_ns, timed->second_ns, timed->launch_count,
                                   paired_timing->quantum_ns, timed->series.systematic);
        }
        each[i] = timed->estimate;
        weight[i] = timed->weight;
    }
    paired_timing->combined = timing_combine(each, weight, paired_timing->case_count);
}

// Runs the first blocks of each case, which ends early where it shows a clear loser. If some case
// does and all together do, nothing more is run.
static int run_first(struct paired_timing *paired_timing, struct err *err)
{
    bool any_lost = false;

    for (size_t i = 0; i < paired_timing->case_count; i++) {
        struct timed_case *timed = &paired_timing->cases[i];
        bool capped;
        int rc = run_case(paired_timing, timed, TIMING_FIRST_LOOK, true, &capped, err);

        if (rc != 0) {
            return rc;
        }
        paired_timing->capped |= capped;
        any_lost |= timed->lost;
    }
    if (any_lost) {
        estimate(paired_timing);
        paired_timing->lost =
            timing_is_loss(&paired_timing->rule, &paired_timing->combined, TIMING_LOSS_ALPHA);
    }
    return 0;
}

int paired_timing_run(struct paired_timing *paired_timing, struct err *err)
{
    int rc = run_first(paired_timing, err);
    bool stop = paired_timing->lost;

    for (size_t look = 0; rc == 0 && look < paired_timing->looks && !stop; look++) {
        for (size_t i = 0; i < paired_timing->case_count; i++) {
            bool capped;

            rc = run_case(paired_timing, &paired_timing->cases[i], timing_look_blocks(look), false,
                          &capped, err);
            if (rc != 0) {
                return rc;
            }
            paired_timing->capped |= capped;
        }
        estimate(paired_timing);
        stop = paired_timing->capped || paired_timing_disturbed(paired_timing) ||
               timing_decided(&paired_timing->rule, &paired_timing->combined);
    }
    return rc;
}

const struct timed_case *paired_timing_disturbed(const struct paired_timing *paired_timing)
{
    for (size_t i = 0; i < paired_timing->case_count; i++) {
        if (paired_timing->cases[i].disturbed) {
            return &paired_timing->cases[i];
        }
    }
    return NULL;
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
