#include "executor/comparison.h"

// A candidate remembers answers when it is this many times slower on new contents, and by more
// nanoseconds than a clock or a cache explains.
#define FRESH_RATIO 1.5
#define FRESH_EXCESS_NS 3000.0

static int run_block(void *owner, struct timed_case *timed, struct timing_block *ret,
                     struct err *err)
{
    static const unsigned char order[2][4] = {{0, 1, 1, 0}, {1, 0, 0, 1}};
    const struct comparison *comparison = owner;
    const enum arm_index arm[2] = {ARM_BASELINE, comparison->second};
    const struct measure_case *of = timed->of;
    int rc = 0;

    if (comparison->ops->begin_block) {
        rc = comparison->ops->begin_block(comparison->machine, of->data, comparison->second, err);
    }
    struct launch_time time[2][2];
    size_t done[2] = {0, 0};
    for (size_t i = 0; i < 4 && rc == 0; i++) {
        size_t which = order[timed->phase][i];

        rc = comparison->ops->launch(comparison->machine, of->data, arm[which], timed->slot,
                                     &time[which][done[which]], err);
        done[which]++;
    }
    if (comparison->ops->end_block) {
        comparison->ops->end_block(comparison->machine, comparison->second);
    }
    if (rc != 0) {
        return rc;
    }
    for (size_t which = 0; which < 2; which++) {
        for (size_t i = 0; i < 2; i++) {
            ret->cpu[which][i] = time[which][i].cpu;
            ret->wall[which][i] = time[which][i].wall;
        }
    }
    return 0;
}

static bool is_void(void *owner, const struct timing_block *block)
{
    const struct comparison *comparison = owner;

    return comparison->ops->is_void(comparison->machine, block);
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
    paired_timing->is_void = is_void;
    paired_timing->systematic = systematic;
    paired_timing->rng = &measurement->rng;
    paired_timing->slots = MEASURE_CONTENTS;
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
    }
}

// ---- contents that were never seen ----

bool comparison_remembers(const struct measure_fresh *fresh)
{
    return fresh->least_ns > FRESH_RATIO * fresh->usual_ns &&
           fresh->least_ns - fresh->usual_ns > FRESH_EXCESS_NS;
}

int comparison_probe_fresh(struct comparison *comparison, struct err *err)
{
    for (size_t i = 0; i < comparison->timing.case_count; i++) {
        struct timed_case *timed = &comparison->timing.cases[i];
        const struct measure_case *of = timed->of;
        struct measure_fresh fresh;
        int rc = comparison->ops->probe_fresh(comparison->machine, &comparison->timing, timed,
                                              &fresh, err);

        if (rc != 0) {
            return rc;
        }
        if (comparison_remembers(&fresh)) {
            return measurement_stop(comparison->measurement, VERDICT_QUARANTINED,
                                    "the candidate is %.2f times slower on contents it has never "
                                    "seen than on repeated ones, for %s",
                                    fresh.least_ns / fresh.usual_ns, of->name);
        }
    }
    return 0;
}
