// Timed launches: the baseline and another arm against each other over the benchmark cases, in ABBA
// blocks (exec/paired timing.h says which and how many), every launch verified.
#ifndef EXECUTOR_PAIRED_RUN_H
#define EXECUTOR_PAIRED_RUN_H

#include "executor/measure.h"
#include "executor/paired_timing.h"

struct paired_run {
    const struct measure_ops *ops;
    void *machine;
    struct measurement *measurement;
    enum arm_index second;              // ratio: time of the baseline / time of this arm
    struct paired_timing paired_timing; // its lanes' trial: struct measure_case
};

// One lane per case. The plan says how long and how precisely; the caller may change that in
// race->paired timing before it gives that to paired_timing_run. The cases must outlive the race.
void paired_run_init(struct paired_run *paired_run, const struct measure_ops *ops, void *machine,
                     struct measurement *measurement, struct measure_case *cases, size_t case_count,
                     enum arm_index second);

// After a race of baseline and candidate: launches on contents that were never seen. A candidate
// that is much slower on those than on the repeated ones remembers answers: MEASURE_STOP,
// QUARANTINED.
MUST_CHECK int paired_run_probe_fresh(struct paired_run *paired_run, struct err *err);

// Whether these times are those of one who remembers answers.
bool paired_run_remembers(const struct measure_fresh *fresh);

#endif
