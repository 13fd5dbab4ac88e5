// One measurement: from a plan to a verdict. The only thing that knows the order of things; see
// docs/measuring.md. It knows no machine: a core (executor/cpu/measure_cpu.h) or a GPU (executor/gpu/measure.h)
// stands behind struct measure_ops.
#ifndef EXECUTOR_MEASURE_H
#define EXECUTOR_MEASURE_H

#include "executor/measurement.h"
#include "executor/timing.h"

struct paired_timing;
struct lane;

// What a machine can do at most, and how much of a case's traffic need not reach its memory.
struct measure_peaks {
    double flops;        // per second; NaN or 0: not known
    double bytes;        // per second; NaN or 0: not known
    double cached_bytes; // of the case: these are not counted against bytes
};

// The candidate's times on contents that it has never seen.
struct measure_fresh {
    double least_ns; // the quickest launch
    double usual_ns; // what it takes on repeated contents, with what the contents themselves change
};

// What a machine does for a measurement. `machine` is the caller's object for it, its contents are
// known to these functions only; `trial` is what trial_create made of a case. Where a function
// returns int, that is 0, MEASURE_STOP (the candidate has failed, the verdict is in the
// measurement) or an error, which is never the candidate's.
struct measure_ops {
    const char *noun;        // "processor", "GPU": for sentences
    const char *disturbance; // what it is when most blocks are void: "something else runs on …"
    uint64_t rng_stream;     // for measurement_init
    bool inputs_are_timing;  // seconds that inputs take between timed launches count as timing too
    double short_ns;         // as in struct paired timing
    double quantum_ns;       // as in struct paired timing

    // The seed of the hidden cases.
    uint64_t (*hidden_seed)(const struct measure_plan *plan);
    // Takes the measurement, which outlives the machine's use of it; before the clock of the start
    // runs.
    int (*open)(void *machine, struct measurement *measurement, struct err *err);
    // Loads what is launched. All check, hidden and benchmark cases can be run afterwards.
    int (*start)(void *machine, const struct shape_case *hidden, size_t hidden_count,
                 struct err *err);
    // Gives everything back; also when it was never opened, or only half.
    void (*close)(void *machine);

    // The case's place on the machine; *ret is for trial_free. On failure there is none.
    int (*trial_create)(void *machine, const struct measure_case *of, void **ret, struct err *err);
    void (*trial_free)(void *machine, void *trial);
    // Launches the candidate on each of the trial's contents and verifies its outputs; the baseline
    // too where it is to be timed.
    int (*verify)(void *machine, void *trial, bool timed, struct err *err);
    // Makes ARM_CONTROL fit for timing on this trial.
    int (*prepare_control)(void *machine, void *trial, struct err *err);

    // A block is four launches of the baseline and another arm. end_block follows whatever happens
    // since begin_block. Either may be NULL: nothing to do.
    int (*begin_block)(void *machine, void *trial, enum arm_index second, struct err *err);
    // One timed launch on contents 0 or 1 of the trial, verified. What *ret says is complete after
    // end_block; it must stay where it is until then.
    int (*launch)(void *machine, void *trial, enum arm_index arm, size_t content,
                  struct launch_time *ret, struct err *err);
    void (*end_block)(void *machine, enum arm_index second);
    // Whether the block was disturbed in one arm more than in the other.
    bool (*is_void)(void *machine, const struct timing_block *block);
    // Standard deviation, in log2, of what no number of blocks reduces, for launches of this length.
    double (*systematic)(void *machine, double launch_ns);
    // Launches baseline and candidate on contents that were never seen. The paired timing of the two is
    // over, its lane's trial is a struct measure_case.
    int (*probe_fresh)(void *machine, struct paired_timing *paired_timing, struct lane *lane,
                       struct measure_fresh *ret, struct err *err);

    struct measure_peaks (*peaks)(void *machine, const void *trial);
    // Adds what only the machine can say: trust, sandbox, clock, output_tail; retire.
    void (*outcome)(void *machine, struct measure_outcome *outcome);
};

// On success *report (uninitialised before) owns its parts. Errors are failures of kernelcast, of the
// machine or of the problem, never of the candidate: that is a verdict. The machine is closed in
// either case.
MUST_CHECK int measure_run(const struct measure_ops *ops, void *machine,
                           const struct measure_plan *plan, struct measure_outcome *outcome,
                           struct err *err);

#endif
