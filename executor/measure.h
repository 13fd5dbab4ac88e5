// One measurement: from a plan to a verdict. This module owns the order of the steps (see
// docs/measuring.md) and the outcome. executor/main.c calls it for a core (executor/cpu/measure.h),
// the serving mode of GPUs for a GPU (executor/gpu/measure.h). It must not know what runs the
// launches: that stands behind struct measure_ops.
#ifndef EXECUTOR_MEASURE_H
#define EXECUTOR_MEASURE_H

#include "executor/measurement.h"
#include "executor/timing.h"

// The peak rates of a machine. The floor of a case's time follows from them.
struct measure_peaks {
    double flops;        // floating-point operations per second; NaN or 0: not known
    double bytes;        // bytes per second; NaN or 0: not known
    double cached_bytes; // bytes of the case that need not reach memory: not counted against bytes
};

// What a machine does for a measurement. `machine` is the object of the machine, `data` is what its
// data_create has made of a case; only these functions look into the two. A function that returns
// int returns 0, MEASURE_STOP or an error. MEASURE_STOP means that the candidate has failed and
// that the measurement holds its verdict. An error is never the candidate's fault.
struct measure_ops {
    const char *noun;        // "processor" or "GPU", for sentences
    const char *disturbance; // a clause that says why most blocks were void
    uint64_t rng_stream;     // for measurement_init
    bool inputs_are_timing;  // making and judging contents counts as seconds of timing
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
    // Launches the candidate on contents 0 to MEASURE_CONTENTS - 1 of the case and has the
    // reference judge all that it computes. Does the same with the baseline when the case will be
    // timed.
    int (*verify)(void *machine, void *data, bool timed, struct err *err);
    // Prepares ARM_CONTROL for being timed on this case.
    int (*prepare_control)(void *machine, void *data, struct err *err);

    // Called before the first block of each superblock, and once more after its last (last). It
    // takes from both arms what they could have kept, and looks for what the second has written
    // where it must not.
    int (*superblock)(void *machine, void *data, enum arm_index second, bool last, struct err *err);
    // Makes one timed launch on a content of the case that this arm has never had. Contents have
    // numbers, from MEASURE_CONTENTS on. In a block each of two contents is launched by both arms,
    // one right after the other. What the second arm has computed is kept until end_pair.
    int (*launch)(void *machine, void *data, enum arm_index arm, uint64_t content,
                  struct launch_time *ret, struct err *err);
    // Verifies the last two launches, of both arms on this content. What the arms have computed is
    // compared. What differs more than rounding explains goes to the reference, and so does the
    // second arm's launch when judge is set. Called only when both launches have succeeded.
    int (*end_pair)(void *machine, void *data, enum arm_index second, uint64_t content, bool judge,
                    struct err *err);
    // Times the baseline where the candidate can no longer do anything, in nanoseconds: the median
    // of some launches. NaN: it could do nothing beside the baseline's launches, either. NULL: as
    // if it were NaN. The candidate is not launched afterwards.
    int (*alone)(void *machine, void *data, double *ret_ns, struct err *err);
    // Whether the block counts.
    enum block_state (*block_state)(void *machine, const struct timing_block *block);
    // Returns the standard deviation, in log2, of the error that more blocks do not reduce, for
    // launches of this length.
    double (*systematic)(void *machine, double launch_ns);

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
