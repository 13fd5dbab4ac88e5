#include "executor/paired_run.h"

#define FRESH_RATIO 1.5
#define FRESH_EXCESS_NS 3000.0

static int run_block(void *owner, struct lane *lane, struct timing_block *ret, struct err *err)
{
    static const unsigned char order[2][4] = {{0, 1, 1, 0}, {1, 0, 0, 1}};
    const struct paired_run *paired_run = owner;
    const enum arm_index arm[2] = {ARM_BASELINE, paired_run->second};
    const struct measure_case *of = lane->trial;
    int rc = 0;

    if (paired_run->ops->begin_block) {
        rc = paired_run->ops->begin_block(paired_run->machine, of->trial, paired_run->second, err);
    }
    struct launch_time time[2][2];
    size_t done[2] = {0, 0};
    for (size_t i = 0; i < 4 && rc == 0; i++) {
        size_t which = order[lane->phase][i];

        rc = paired_run->ops->launch(paired_run->machine, of->trial, arm[which], lane->slot,
                                     &time[which][done[which]], err);
        done[which]++;
    }
    if (paired_run->ops->end_block) {
        paired_run->ops->end_block(paired_run->machine, paired_run->second);
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
    const struct paired_run *paired_run = owner;

    return paired_run->ops->is_void(paired_run->machine, block);
}

static double systematic(void *owner, const struct lane *lane)
{
    const struct paired_run *paired_run = owner;

    return paired_run->ops->systematic(paired_run->machine, paired_timing_median(lane));
}

void paired_run_init(struct paired_run *paired_run, const struct measure_ops *ops, void *machine,
                     struct measurement *measurement, struct measure_case *cases, size_t case_count,
                     enum arm_index second)
{
    const struct measure_plan *plan = measurement->plan;
    struct paired_timing *paired_timing = &paired_run->paired_timing;

    *paired_run = (struct paired_run){
        .ops = ops, .machine = machine, .measurement = measurement, .second = second};
    paired_timing->owner = paired_run;
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
    paired_timing->lane_count = case_count;
    for (size_t i = 0; i < case_count; i++) {
        paired_timing->lane[i].trial = &cases[i];
        paired_timing->lane[i].weight = cases[i].shape->weight;
    }
}

// ---- contents that were never seen ----

bool paired_run_remembers(const struct measure_fresh *fresh)
{
    return fresh->least_ns > FRESH_RATIO * fresh->usual_ns &&
           fresh->least_ns - fresh->usual_ns > FRESH_EXCESS_NS;
}

int paired_run_probe_fresh(struct paired_run *paired_run, struct err *err)
{
    for (size_t i = 0; i < paired_run->paired_timing.lane_count; i++) {
        struct lane *lane = &paired_run->paired_timing.lane[i];
        const struct measure_case *of = lane->trial;
        struct measure_fresh fresh;
        int rc = paired_run->ops->probe_fresh(paired_run->machine, &paired_run->paired_timing, lane,
                                              &fresh, err);

        if (rc != 0) {
            return rc;
        }
        if (paired_run_remembers(&fresh)) {
            return measurement_stop(paired_run->measurement, VERDICT_QUARANTINED,
                                    "the candidate is %.2f times slower on contents it has never "
                                    "seen than on repeated ones, for %s",
                                    fresh.least_ns / fresh.usual_ns, of->name);
        }
    }
    return 0;
}
