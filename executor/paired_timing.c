// A superblock is eight blocks of the same phase (A B B A or B A A B), which is drawn at random.
// Before them the second half of such a block runs and does not count. What one launch leaves in
// the caches for the next is then the same for both arms, because in (B A) A B B A A B B A … each
// arm follows each arm equally often. No launch has contents that its arm has had before: a block
// has two contents, one for its first A and B and one for its second, so each arm is first on a
// content equally often.
#include "executor/paired_timing.h"
#include "common/clock.h"
#include <math.h>
#include <string.h>

#define BLOCKS_LEAST 3 // run for each case whatever the limit of seconds
// Blocks of a case whose differences show whether the second arm is a clear loser. Of fewer, the
// noise is known only from within them (timing_of_pairs).
#define LOSS_BLOCKS 3
#define LOSS_BLOCKS_LEAST 2 // of all cases together, to find a clear loser by
// One in so many launches is judged: of the first superblock of a case, and of later ones.
#define JUDGED_FIRST 3.2
#define JUDGED_LATER 12.0
// Cases that together have no greater share of the variance than this get no more blocks at a look,
// from the look on at which the noise of each is known well enough.
#define QUIET_SHARE 0.1
#define QUIET_LOOK 2
#define UNLIKE_LEAST 4 // blocks with different clocks that are repeated in any case

static double now_s(void)
{
    return clock_seconds(clock_now_ns(&clock_system));
}

// Returns the time from which a limit of seconds counts.
static double timing_s(const struct paired_timing *paired_timing)
{
    return now_s() - (paired_timing->aside_s ? *paired_timing->aside_s : 0);
}

// Whether a block counts though its arms had different clocks. While such blocks are few they are
// the machine's doing, and repeated. When they are most, it is what the arms do to the clock.
static bool is_doing_of_arms(struct timed_case *timed)
{
    size_t blocks = timed->voids + timed->series.count + 1;

    timed->unlike++;
    return timed->unlike > UNLIKE_LEAST &&
           (double)timed->unlike > TIMING_VOID_SHARE * (double)blocks;
}

// Whether the block is repeated. Blocks in which the second arm's time escaped its clock are
// excused as long as they are no more than those in which the first arm's did: so many are the
// machine's doing. The others count, by the time that the second arm took by the wall clock. So
// nobody can have a block taken out that went badly.
static bool is_void(struct timed_case *timed, enum block_state state)
{
    if (state == BLOCK_COUNTS || (state == BLOCK_UNLIKE && is_doing_of_arms(timed))) {
        return false;
    }
    size_t disturbed = timed->voids - timed->escaped;
    timed->voids++;
    timed->escaped += state == BLOCK_ESCAPED;
    timed->disturbed =
        (double)timed->voids > TIMING_FIRST_LOOK + TIMING_VOID_SHARE * (double)timed->attempts;
    return state != BLOCK_ESCAPED || timed->escaped <= disturbed;
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
    } else if (state == BLOCK_UNLIKE) {
        timing_block_make_alike(&counted);
        timed->unlike_counted++;
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

// Draws which launches of the second arm are to be judged in the block that comes after `before`
// counted ones. Each is drawn by itself: the time that judging takes shows afterwards which were,
// and must say nothing about others. Of a case's first superblock at least one is drawn.
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
    int rc = paired_timing->superblock(paired_timing->owner, timed, false, err);
    timed->content++;
    return rc;
}

static int run_one(struct paired_timing *paired_timing, struct timed_case *timed, struct err *err)
{
    int rc = timed->in_superblock ? 0 : start_superblock(paired_timing, timed, err);

    if (rc != 0) {
        return rc;
    }
    size_t before = timed->series.count;
    timed->judge = draw_judged(paired_timing->rng, timed, before);
    struct timing_block block;
    rc = paired_timing->run_block(paired_timing->owner, timed, &block, err);
    timed->attempts++;
    timed->content += 2;
    if (rc != 0) {
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

static struct timing_estimate estimate_pairs(struct paired_timing *paired_timing,
                                             struct timed_case *timed)
{
    return timing_of_pairs(timed->first_ns, timed->second_ns, timed->series.count,
                           paired_timing->systematic(paired_timing->owner, timed));
}

// Whether the case ended before its blocks could be told from each other.
static bool ended_on_few(const struct timed_case *timed)
{
    return timed->ended_early && timed->series.count < LOSS_BLOCKS;
}

// Whether each block of this case is slower in the second arm by a wide margin, and none was
// disturbed. Noise that a whole block shares cannot be seen within it, so this is asked as well
// where there are few blocks.
static bool all_far_below(const struct paired_timing *paired_timing, const struct timed_case *timed)
{
    bool all = timed->voids == 0;

    for (size_t i = 0; i < timed->series.count; i++) {
        all = all && timing_is_far_below(&paired_timing->rule, timed->series.d[i]);
    }
    return all;
}

// Whether the blocks of this case so far show that the second arm is a clear loser.
static bool case_is_lost(struct paired_timing *paired_timing, struct timed_case *timed)
{
    bool few = timed->series.count < LOSS_BLOCKS;

    // Whoever hides time has not lost by it, but is found out.
    if (timed->escaped > 0 || (few && !all_far_below(paired_timing, timed))) {
        return false;
    }
    struct timing_estimate estimate =
        few ? estimate_pairs(paired_timing, timed) : estimate_blocks(paired_timing, timed);
    return timing_is_loss(&paired_timing->rule, &estimate, TIMING_LOSS_CASE_ALPHA);
}

// Sets the estimate of each case, from its blocks.
static void estimate_cases(struct paired_timing *paired_timing)
{
    for (size_t i = 0; i < paired_timing->case_count; i++) {
        struct timed_case *timed = &paired_timing->cases[i];

        timed->estimate = ended_on_few(timed) ? estimate_pairs(paired_timing, timed)
                                              : estimate_blocks(paired_timing, timed);
    }
}

// Returns what the cases' estimates come to together.
static struct timing_estimate combine(const struct paired_timing *paired_timing)
{
    struct timing_estimate each[PROBLEM_CASE_MAX];
    double weight[PROBLEM_CASE_MAX];

    for (size_t i = 0; i < paired_timing->case_count; i++) {
        each[i] = paired_timing->cases[i].estimate;
        weight[i] = paired_timing->cases[i].weight;
    }
    return timing_combine(each, weight, paired_timing->case_count);
}

// Whether the blocks of all cases together show that the second arm is a clear loser. What disturbs
// a whole block comes seldom enough that it does not do so in all cases: where one of them has few
// blocks, each has to show it as well.
static bool is_lost(struct paired_timing *paired_timing)
{
    bool few = false;

    for (size_t i = 0; i < paired_timing->case_count; i++) {
        const struct timed_case *timed = &paired_timing->cases[i];

        if (timed->series.count == 0 || timed->escaped > 0) {
            return false;
        }
        few |= timed->series.count < LOSS_BLOCKS;
    }
    for (size_t i = 0; i < paired_timing->case_count && few; i++) {
        if (!case_is_lost(paired_timing, &paired_timing->cases[i])) {
            return false;
        }
    }
    estimate_cases(paired_timing);
    struct timing_estimate all = combine(paired_timing);
    return timing_is_loss(&paired_timing->rule, &all, TIMING_LOSS_ALPHA);
}

// Whether the second arm is likely to lose: most candidates of a search do, whose cases are not
// equally far above the baseline; others do when it seems so by the cases up to this one.
static bool may_be_lost(const struct paired_timing *paired_timing, const struct timed_case *timed)
{
    double log2 = 0, weight = 0;

    if (!isnan(paired_timing->rule.anchor_log2)) {
        return true;
    }
    for (const struct timed_case *of = paired_timing->cases; of <= timed; of++) {
        log2 += of->weight * timing_of(&of->series).log2;
        weight += of->weight;
    }
    return timing_is_below(&paired_timing->rule, log2 / weight);
}

// Whether a case has enough blocks for now, which is asked after each.
typedef bool stop_rule(struct paired_timing *paired_timing, struct timed_case *timed);

// Whether it is certain on which side of a clear loser this case is, whatever the others say.
static bool is_known(struct paired_timing *paired_timing, struct timed_case *timed)
{
    struct timing_estimate estimate = estimate_blocks(paired_timing, timed);

    return timing_is_loss(&paired_timing->rule, &estimate, TIMING_LOSS_CASE_ALPHA) ||
           timing_is_no_loss(&paired_timing->rule, &estimate, TIMING_LOSS_CASE_ALPHA);
}

// From LOSS_BLOCKS on a case that is known well enough waits for the others when a loser is likely:
// all cases together may end it. Otherwise it goes on, since it would have to warm up again.
static bool stop_on_three(struct paired_timing *paired_timing, struct timed_case *timed)
{
    bool all = true;

    for (size_t i = 0; i < paired_timing->case_count; i++) {
        all &= paired_timing->cases[i].series.count >= LOSS_BLOCKS;
    }
    return all ? is_lost(paired_timing)
               : timed->series.count >= LOSS_BLOCKS && may_be_lost(paired_timing, timed) &&
                     is_known(paired_timing, timed);
}

static bool stop_on_few(struct paired_timing *paired_timing, struct timed_case *timed)
{
    size_t least = paired_timing->case_count < LOSS_BLOCKS_LEAST ? LOSS_BLOCKS_LEAST : 1;
    bool few = timed->series.count >= least && timed->series.count < LOSS_BLOCKS;

    return few ? case_is_lost(paired_timing, timed) : stop_on_three(paired_timing, timed);
}

// Adds blocks to a case until it has as many as the look needs, `stop`, which may be NULL, says so,
// or its share of the seconds is used up. BLOCKS_LEAST are run in any case, so that there is an
// estimate, however wide.
static int run_case(struct paired_timing *paired_timing, struct timed_case *timed, size_t blocks,
                    stop_rule *stop, bool *ret_capped, struct err *err)
{
    double timing = timing_s(paired_timing);
    double budget = paired_timing->max_seconds * timed->weight - timed->spent_s;
    bool ran = false;

    *ret_capped = false;
    int rc = 0;
    timed->ended_early = false;
    while (timed->series.count < blocks && rc == 0 && !timed->disturbed && !timed->ended_early) {
        if (timed->series.count >= BLOCKS_LEAST && timing_s(paired_timing) - timing > budget) {
            *ret_capped = true;
            break;
        }
        rc = run_one(paired_timing, timed, err);
        ran = true;
        timed->ended_early = rc == 0 && stop && stop(paired_timing, timed);
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

// Short launches of a clear loser are not compared one by one, since the arms differ by far more
// than what that is for, and there are few of them.
static void estimate(struct paired_timing *paired_timing)
{
    estimate_cases(paired_timing);
    for (size_t i = 0; i < paired_timing->case_count && !paired_timing->lost; i++) {
        struct timed_case *timed = &paired_timing->cases[i];

        if (paired_timing_median(timed) < paired_timing->short_ns) {
            timed->estimate =
                timing_of_launches(timed->first_ns, timed->second_ns, timed->launch_count,
                                   paired_timing->quantum_ns, timed->series.systematic);
        }
    }
    paired_timing->combined = combine(paired_timing);
}

// Runs the first blocks of each case that has fewer than LOSS_BLOCKS. A case may end on fewer as
// long as those before it show a clear loser.
static int run_early(struct paired_timing *paired_timing, stop_rule *stop, struct err *err)
{
    for (size_t i = 0; i < paired_timing->case_count; i++) {
        struct timed_case *timed = &paired_timing->cases[i];
        bool capped;

        if (timed->series.count >= LOSS_BLOCKS) {
            continue;
        }
        int rc = run_case(paired_timing, timed, TIMING_FIRST_LOOK, stop, &capped, err);
        if (rc != 0) {
            return rc;
        }
        paired_timing->capped |= capped;
        stop = case_is_lost(paired_timing, timed) ? stop : stop_on_three;
    }
    paired_timing->lost = is_lost(paired_timing);
    return 0;
}

// Runs the first blocks of each case. If they show a clear loser, nothing more is run. Cases that
// ended on few blocks have LOSS_BLOCKS at least when these are not enough.
static int run_first(struct paired_timing *paired_timing, struct err *err)
{
    int rc = run_early(paired_timing, stop_on_few, err);

    return rc == 0 && !paired_timing->lost ? run_early(paired_timing, stop_on_three, err) : rc;
}

// Finds the cases from which the noise of the combined estimate comes: all without the quietest,
// which together have at most QUIET_SHARE of its variance.
static void find_noisy(const struct paired_timing *paired_timing, bool noisy[PROBLEM_CASE_MAX])
{
    double variance[PROBLEM_CASE_MAX], allowed = 0;
    size_t count = paired_timing->case_count, least;

    for (size_t i = 0; i < count; i++) {
        const struct timed_case *timed = &paired_timing->cases[i];
        double error = timed->weight * timed->estimate.standard_error;

        noisy[i] = true;
        variance[i] = error * error;
        allowed += QUIET_SHARE * variance[i];
    }
    while (isfinite(allowed)) {
        least = count;
        for (size_t i = 0; i < count; i++) {
            if (noisy[i] && (least == count || variance[i] < variance[least])) {
                least = i;
            }
        }
        if (least == count || variance[least] > allowed) {
            break;
        }
        noisy[least] = false;
        allowed -= variance[least];
    }
}

// Runs the blocks of a look: each case gets as many as it has had, but for the quiet ones. Before
// the first look it ends as soon as all cases together show a clear loser.
static int run_look(struct paired_timing *paired_timing, size_t look, struct err *err)
{
    bool noisy[PROBLEM_CASE_MAX];

    if (look >= QUIET_LOOK) {
        find_noisy(paired_timing, noisy);
    }
    for (size_t i = 0; i < paired_timing->case_count; i++) {
        struct timed_case *timed = &paired_timing->cases[i];
        size_t blocks = timing_look_blocks(look), twice = 2 * timed->series.count;

        if (look >= QUIET_LOOK) {
            blocks = !noisy[i] ? 0 : twice < blocks ? twice : blocks;
        }
        bool capped;
        int rc =
            run_case(paired_timing, timed, blocks, look == 0 ? stop_on_three : NULL, &capped, err);

        if (rc != 0) {
            return rc;
        }
        paired_timing->capped |= capped;
        if (timed->ended_early) {
            paired_timing->lost = true;
            break;
        }
    }
    return 0;
}

int paired_timing_run(struct paired_timing *paired_timing, struct err *err)
{
    int rc = run_first(paired_timing, err);
    bool stop = paired_timing->lost;

    if (stop) {
        estimate(paired_timing);
    }
    for (size_t look = 0; rc == 0 && look < paired_timing->looks && !stop; look++) {
        rc = run_look(paired_timing, look, err);
        if (rc != 0) {
            return rc;
        }
        estimate(paired_timing);
        stop = paired_timing->lost || paired_timing->capped ||
               paired_timing_disturbed(paired_timing) ||
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
