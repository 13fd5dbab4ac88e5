// The harness: holds inputs and expected outputs and has the runners launched.
// executor/cpu/measure.c calls it. It must not know what is measured in which order. Every launch,
// timed or not, goes through harness_launch, so that every launch is verified in the same way.
//
// Design notes. Baseline and candidate share the memory of every tensor, so that the place of its
// pages favours neither. Inputs are sealed against writing. Before a launch the harness writes the
// inputs, and poison into the outputs: values that no correct result has. After the launch it
// copies the outputs and verifies the copy, which the candidate can no longer change. Outputs that
// equal, byte for byte, outputs that were verified for the same contents need no second
// verification.
#ifndef EXECUTOR_CPU_HARNESS_H
#define EXECUTOR_CPU_HARNESS_H

#include "executor/cpu/buffer.h"
#include "executor/cpu/runner_process.h"
#include "executor/measurement.h"
#include "executor/sandbox/zygote.h"

// One set of input values and the outputs that belong to them. Everything is owned and malloc'd.
struct content {
    bool made;
    unsigned char *in[PROBLEM_TENSOR_MAX]; // values of in and inout tensors
    double *y[PROBLEM_TENSOR_MAX];         // expected values of out and inout tensors
    double *scale[PROBLEM_TENSOR_MAX];     // error scale of out and inout tensors
    // The outputs of each arm that were verified. NULL: none yet.
    unsigned char *verified[ARM_COUNT][PROBLEM_TENSOR_MAX];
};

// What the harness holds for a case: sizes of its tensors and its contents.
struct case_data {
    const struct measure_case *of;
    size_t count[PROBLEM_TENSOR_MAX]; // elements
    size_t bytes[PROBLEM_TENSOR_MAX];
    size_t last[PROBLEM_TENSOR_MAX]; // extent of the last axis
    struct content content[MEASURE_CONTENTS];
};

struct harness {
    struct zygote *zygote;           // set by the caller
    struct measurement *measurement; // borrowed until harness_release, as are the next two
    const struct measure_plan *plan;
    const struct problem *problem;
    struct runner_process runner[ARM_COUNT];
    struct buffer tensor[PROBLEM_TENSOR_MAX];   // arguments of baseline, candidate and control
    struct buffer expected[PROBLEM_TENSOR_MAX]; // outputs of the reference, as doubles
    struct buffer scale[PROBLEM_TENSOR_MAX];    // error scales by the reference, as doubles
    unsigned char *copy[PROBLEM_TENSOR_MAX];    // copies of outputs, which are verified
    const struct case_data *placed;             // the case whose sizes the buffers have; NULL: none
    uint64_t guard_key;
    unsigned char *flush; // for problems with cold caches: twice the last-level cache
    size_t flush_bytes;
    uint64_t launch_limit_ns, reference_limit_ns;
    double wake_ns;          // usual excess of a launch's wall time over its processor time
    uint64_t out_of_turn_ns; // processor time of the candidate while another arm was launched
    uint64_t others_ns;      // wall time of the other arms' launches during which it used that
};

// Functions that return int return 0, MEASURE_STOP or an error.

// Makes buffers for the largest of the cases and starts a runner for each arm that the plan needs.
// Runners load their objects in the background until harness_ready.
MUST_CHECK int harness_start(struct harness *harness, const struct shape_case *const *shape,
                             size_t shape_count, struct err *err);
// Waits for the runners. MEASURE_STOP when the candidate cannot be loaded.
MUST_CHECK int harness_ready(struct harness *harness, struct err *err);
void harness_release(struct harness *harness);

// *of must outlive *data. Release *data after a failure too.
MUST_CHECK int harness_case_init(struct harness *harness, struct case_data *data,
                                 const struct measure_case *of, struct err *err);
void harness_case_release(struct harness *harness, struct case_data *data);

// Makes content `number` (0, 1, 2, …, any number) in slot `slot` of the case. Inputs follow from
// seed and number; the reference computes what is expected.
MUST_CHECK int harness_content_make(struct harness *harness, struct case_data *data, size_t slot,
                                    uint64_t number, struct err *err);

// Launches the arm on the content in the slot and verifies everything. time may be NULL.
MUST_CHECK int harness_launch(struct harness *harness, enum arm_index arm, struct case_data *data,
                              size_t slot, struct launch_time *time, struct err *err);

// Handles a runner that did not complete a launch. If it is the candidate's, that is its verdict;
// otherwise it is an error. where is the case's name, or "".
MUST_CHECK int harness_runner_failed(struct harness *harness, enum arm_index index,
                                     enum launch_outcome outcome, const char *where,
                                     uint64_t limit_ns, struct err *err);

// ---- parts of harness_launch, in executor/cpu/harness_check.c ----

// Checks everything that the launch of this arm may have written.
MUST_CHECK int harness_check(struct harness *harness, enum arm_index arm, struct case_data *data,
                             size_t slot, struct err *err);
// Called after the launch of any arm, with the candidate's processor time before it and the
// launch's wall time. The candidate's clock must stand still while another arm runs: if it does
// not, MEASURE_STOP.
MUST_CHECK int harness_check_turn(struct harness *harness, enum arm_index arm, uint64_t before_ns,
                                  double wall_ns);

#endif
