#include "executor/comparison.h"
#include <math.h>

// Whether the second arm's launch of a pair took longer than the baseline's by the margin of a
// clear loser. Nothing is won by being wrong there, and the reference often takes ten times as long
// as a launch.
static bool wins_nothing(const struct timing_block *block, size_t number)
{
    return log2(block->cpu[1][number] / block->cpu[0][number]) > TIMING_BELOW_LOG2;
}

// Runs one half of a block, in which both arms have the same content: the first (0) or the second.
static int run_half(const struct comparison *comparison, const struct timed_case *timed,
                    size_t half, uint64_t content, bool judge, struct timing_block *ret,
                    struct err *err)
{
    static const unsigned char order[2][2][2] = {{{0, 1}, {1, 0}}, {{1, 0}, {0, 1}}};
    const enum arm_index arm[2] = {ARM_BASELINE, comparison->second};
    void *data = timed->of->data;

    for (size_t i = 0; i < 2; i++) {
        size_t which = order[timed->phase][half][i];
        struct launch_time time = {0};
        int rc =
            comparison->ops->launch(comparison->machine, data, arm[which], content, &time, err);

        if (rc != 0) {
            return rc;
        }
        ret->cpu[which][half] = time.cpu;
        ret->wall[which][half] = time.wall;
    }
    return comparison->ops->end_pair(comparison->machine, data, comparison->second, content,
                                     judge && !wins_nothing(ret, half), err);
}

static int run_block(void *owner, struct timed_case *timed, struct timing_block *ret,
                     struct err *err)
{
    const struct comparison *comparison = owner;
    unsigned judge = comparison->second == ARM_CANDIDATE ? timed->judge : 0;
    int rc = 0;

    for (size_t half = 0; half < 2 && rc == 0; half++) {
        rc = run_half(comparison, timed, half, timed->content + half, judge >> half & 1, ret, err);
    }
    return rc;
}

static int superblock(void *owner, struct timed_case *timed, bool last, struct err *err)
{
    const struct comparison *comparison = owner;
    struct timing_block ignored;
    int rc = comparison->ops->superblock(comparison->machine, timed->of->data, comparison->second,
                                         last, err);

    return rc != 0 || last ? rc
                           : run_half(comparison, timed, 1, timed->content, false, &ignored, err);
}

static enum block_state block_state(void *owner, const struct timing_block *block)
{
    const struct comparison *comparison = owner;
    enum block_state state = comparison->ops->block_state(comparison->machine, block);

    // A copy of the baseline hides nothing.
    return state == BLOCK_ESCAPED && comparison->second != ARM_CANDIDATE ? BLOCK_DISTURBED : state;
}

static double systematic(void *owner, const struct timed_case *timed)
{
    const struct comparison *comparison = owner;

    return comparison->ops->systematic(comparison->machine, paired_timing_median(timed));
}

void comparison_init(struct comparison *comparison, const struct measure_ops *ops, void *machine,
                     struct measurement *measurement, struct measure_case *cases, size_t case_count,
                     enum arm_index second)
{
    const struct measure_plan *plan = measurement->plan;
    struct paired_timing *paired_timing = &comparison->timing;

    *comparison = (struct comparison){
        .ops = ops, .machine = machine, .measurement = measurement, .second = second};
    paired_timing->owner = comparison;
    paired_timing->run_block = run_block;
    paired_timing->superblock = superblock;
    paired_timing->block_state = block_state;
    paired_timing->systematic = systematic;
    paired_timing->rng = &measurement->rng;
    paired_timing->aside_s = ops->inputs_are_timing ? NULL : &measurement->seconds.inputs;
    paired_timing->short_ns = ops->short_ns;
    paired_timing->quantum_ns = ops->quantum_ns;
    paired_timing->max_seconds = plan->max_seconds;
    paired_timing->looks = timing_looks(plan->max_launches);
    paired_timing->rule.precision_log2 =
        plan->precision_log2 > 0 ? plan->precision_log2 : TIMING_PRECISION_LOG2;
    paired_timing->rule.anchor_log2 = plan->anchor_log2;
    paired_timing->case_count = case_count;
    for (size_t i = 0; i < case_count; i++) {
        paired_timing->cases[i].of = &cases[i];
        paired_timing->cases[i].weight = cases[i].shape->weight;
        paired_timing->cases[i].content = MEASURE_CONTENTS;
    }
}

// Returns a case in most of whose blocks the candidate took time that its clock does not show, and
// the baseline in next to none; NULL when there is none.
static const struct timed_case *find_escaped(const struct paired_timing *timing)
{
    for (size_t i = 0; i < timing->case_count; i++) {
        const struct timed_case *timed = &timing->cases[i];
        double escaped = (double)timed->escaped;

        if (escaped >= TIMING_ESCAPED_LEAST &&
            escaped > TIMING_VOID_SHARE * (double)timed->attempts &&
            escaped >= TIMING_ESCAPED_SHARE * (double)timed->voids) {
            return timed;
        }
    }
    return NULL;
}

int comparison_run(struct comparison *comparison, struct err *err)
{
    int rc = paired_timing_run(&comparison->timing, err);
    const struct timed_case *escaped = find_escaped(&comparison->timing);

    if (rc != 0 || !escaped || comparison->second != ARM_CANDIDATE) {
        return rc;
    }
    return measurement_stop(comparison->measurement, VERDICT_QUARANTINED,
                            "the candidate took time that its clock does not show in %zu of %zu "
                            "blocks, for %s",
                            escaped->escaped, escaped->attempts, escaped->of->name);
}
