// One measurement: from a plan to a verdict. This module owns the order of the steps (see
// docs/measuring.md) and the outcome. executor/main.c calls it for a core (executor/cpu/measure.h),
// the serving mode of GPUs for a GPU (executor/gpu/measure.h). It must not know what runs the
// launches: that stands behind struct measure_ops.
#ifndef EXECUTOR_MEASURE_H
#define EXECUTOR_MEASURE_H

#include "executor/measurement.h"
#include "executor/timing.h"

struct paired_timing;
struct timed_case;

// The peak rates of a machine. The floor of a case's time follows from them.
struct measure_peaks {
    double flops;        // floating-point operations per second; NaN or 0: not known
    double bytes;        // bytes per second; NaN or 0: not known
    double cached_bytes; // bytes of the case that need not reach memory: not counted against bytes
};

// The candidate's times on contents that it has never seen.
struct measure_fresh {
    double least_ns; // the quickest launch on new contents
    double
        usual_ns; // a launch on repeated contents, times what the change of contents costs anybody
};

// What a machine does for a measurement. `machine` is the object of the machine, `data` is what its
// data_create has made of a case; only these functions look into the two. A function that returns
// int returns 0, MEASURE_STOP or an error. MEASURE_STOP means that the candidate has failed and
// that the measurement holds its verdict. An error is never the candidate's fault.
struct measure_ops {
    const char *noun;        // "processor" or "GPU", for sentences
    const char *disturbance; // a clause that says why most blocks were void
    uint64_t rng_stream;     // for measurement_init
    bool inputs_are_timing;  // making inputs between timed launches counts as seconds of timing
    double short_ns;         // see struct paired_timing
    double quantum_ns;       // see struct paired_timing

    // Returns the seed of the hidden cases.
    uint64_t (*hidden_seed)(const struct measure_plan *plan);
    // Lends the measurement to the machine until close. Called before the seconds of the start are
    // counted.
    int (*open)(void *machine, struct measurement *measurement, struct err *err);
    // Loads everything that is launched. Afterwards each check, hidden and benchmark case can run.
    int (*start)(void *machine, const struct shape_case *hidden, size_t hidden_count,
                 struct err *err);
    // Releases everything. Also called when open was never called or has failed.
    void (*close)(void *machine);

    // Makes what the machine needs for a case: memory, contents. *of outlives it. data_free
    // releases *ret. On failure there is nothing to release.
    int (*data_create)(void *machine, const struct measure_case *of, void **ret, struct err *err);
    void (*data_free)(void *machine, void *data);
    // Launches the candidate on each content of the case and verifies its outputs. Does the same
    // with the baseline when the case will be timed.
    int (*verify)(void *machine, void *data, bool timed, struct err *err);
    // Prepares ARM_CONTROL for being timed on this case.
    int (*prepare_control)(void *machine, void *data, struct err *err);

    // Called before and after each block. Either may be NULL. end_block is called even when
    // begin_block or a launch has failed.
    int (*begin_block)(void *machine, void *data, enum arm_index second, struct err *err);
    // Makes one timed launch on the case's content number 0 or 1 and verifies it. The machine may
    // complete *ret as late as in end_block, so *ret must stay at its address until then.
    int (*launch)(void *machine, void *data, enum arm_index arm, size_t content,
                  struct launch_time *ret, struct err *err);
    void (*end_block)(void *machine, enum arm_index second);
    // Whether the block was disturbed in one arm more than in the other.
    bool (*is_void)(void *machine, const struct timing_block *block);
    // Returns the standard deviation, in log2, of the error that more blocks do not reduce, for
    // launches of this length.
    double (*systematic)(void *machine, double launch_ns);
    // Launches baseline and candidate on contents that neither has seen. Called after the paired
    // timing of the two.
    int (*probe_fresh)(void *machine, struct paired_timing *paired_timing, struct timed_case *timed,
                       struct measure_fresh *ret, struct err *err);

    // The peak rates that hold for this case.
    struct measure_peaks (*peaks)(void *machine, const void *data);
    // Adds to the outcome what only the machine knows: trust, sandbox, clock, output_tail, retire.
    void (*outcome)(void *machine, struct measure_outcome *outcome);
};

// Runs the whole measurement of the plan. *outcome may be uninitialised; on success the caller owns
// its parts. An error is a failure of kernelcast, of the machine or of the problem. A failure of
// the candidate is a verdict, and therefore a success. The machine is closed in either case.
MUST_CHECK int measure_run(const struct measure_ops *ops, void *machine,
                           const struct measure_plan *plan, struct measure_outcome *outcome,
                           struct err *err);

#endif
