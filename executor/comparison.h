// The baseline compared with another arm over the benchmark cases: the blocks that
// executor/paired_timing.h asks for are launched on the machine, and every launch is verified
// there. executor/measure.c calls this. It must not know what kind of machine it is.
#ifndef EXECUTOR_COMPARISON_H
#define EXECUTOR_COMPARISON_H

#include "executor/measure.h"
#include "executor/paired_timing.h"

struct comparison {
    const struct measure_ops *ops; // borrowed, as are the next two
    void *machine;
    struct measurement *measurement;
    enum arm_index second; // the ratio is time of the baseline / time of this arm
    struct paired_timing timing;
};

// Prepares the paired timing of these cases, which must outlive the comparison. The plan says how
// long and how precisely; the caller may change that in comparison->timing before comparison_run.
void comparison_init(struct comparison *comparison, const struct measure_ops *ops, void *machine,
                     struct measurement *measurement, struct measure_case *cases, size_t case_count,
                     enum arm_index second);

// Runs the paired timing. MEASURE_STOP when the candidate has failed, also when it is quarantined
// because it takes time that its clock does not show.
MUST_CHECK int comparison_run(struct comparison *comparison, struct err *err);

#endif
