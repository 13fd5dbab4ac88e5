// The harness: holds inputs and expected outputs, and has the runners launched. What is measured and in
// which order is not its concern (executor/cpu/measure.c puts it behind struct measure_ops); every launch,
// timed or not, goes through harness_launch, so that each is checked the same way.
//
// Design notes. Baseline and candidate share the same memory for every tensor, so that neither is
// favoured by where its pages lie. Inputs are sealed against writing. Before a launch the harness
// writes the inputs and poison into the outputs; after it, it copies the outputs and only then
// looks. An output equal, byte for byte, to one that was verified for the same contents is
// verified.
#ifndef EXECUTOR_CPU_HARNESS_H
#define EXECUTOR_CPU_HARNESS_H

#include "executor/cpu/runner_process.h"
#include "executor/cpu/buffer.h"
#include "executor/measurement.h"
#include "executor/sandbox/zygote.h"

// One set of input values and what the outputs should be.
struct content {
    bool made;
    unsigned char *in[PROBLEM_TENSOR_MAX]; // in and inout
    double *y[PROBLEM_TENSOR_MAX];         // out and inout: expected
    double *scale[PROBLEM_TENSOR_MAX];     // and error scale
    unsigned char
        *verified[ARM_COUNT][PROBLEM_TENSOR_MAX]; // outputs of that arm that passed; NULL: none yet
};

// One case and its contents.
struct case_data {
    const struct measure_case *of;
    size_t count[PROBLEM_TENSOR_MAX]; // elements
    size_t bytes[PROBLEM_TENSOR_MAX];
    size_t last[PROBLEM_TENSOR_MAX]; // extent of the last axis
    struct content content[MEASURE_CONTENTS];
};

struct harness {
    struct zygote *zygote;           // set by the caller
    struct measurement *measurement; // with the harness between harness_start and harness_release
    const struct measure_plan *plan; // the measurement's
    const struct problem *problem;   // the measurement's
    struct runner_process runner[ARM_COUNT];
    struct buffer tensor[PROBLEM_TENSOR_MAX];
    struct buffer expected[PROBLEM_TENSOR_MAX]; // the reference's outputs, in double
    struct buffer scale[PROBLEM_TENSOR_MAX];
    unsigned char *copy[PROBLEM_TENSOR_MAX]; // where outputs are looked at
    const struct case_data *placed;              // the case that the buffers are placed for
    uint64_t guard_key;
    unsigned char *flush; // 2 x last-level cache, for cold problems
    size_t flush_bytes;
    uint64_t launch_limit_ns, reference_limit_ns;
    double wake_ns; // what a launch's wall time exceeds its processor time by when nothing is wrong
    uint64_t out_of_turn_ns; // processor time of the candidate during others' launches
    uint64_t others_ns;      // wall time of those launches
};

// Functions return 0, MEASURE_STOP or an error.

// Buffers for the largest of the cases, runners for all arms that the plan needs. Runners load in the
// background until harness_ready.
MUST_CHECK int harness_start(struct harness *harness, const struct shape_case *const *shape,
                             size_t shape_count, struct err *err);
// Waits for the runners. MEASURE_STOP when the candidate cannot be loaded.
MUST_CHECK int harness_ready(struct harness *harness, struct err *err);
void harness_release(struct harness *harness);

// *of must outlive the data.
MUST_CHECK int harness_case_init(struct harness *harness, struct case_data *data,
                                  const struct measure_case *of, struct err *err);
void harness_case_release(struct harness *harness, struct case_data *data);

// Makes contents number `number` (any number: 0, 1, 2, …) in slot `slot` of the data: inputs, and
// by the reference what is expected.
MUST_CHECK int harness_content_make(struct harness *harness, struct case_data *data, size_t slot,
                                    uint64_t number, struct err *err);

// Launches the arm on the contents and verifies everything. time may be NULL; its cpu is complete
// after runner_process_settle.
MUST_CHECK int harness_launch(struct harness *harness, enum arm_index arm, struct case_data *data,
                              size_t slot, struct launch_time *time, struct err *err);

// A runner that did not do what it was told. The candidate's failure is its verdict, anybody else's
// an error. where: "" or the case's name.
MUST_CHECK int harness_runner_failed(struct harness *harness, enum arm_index index,
                                  enum launch_outcome outcome, const char *where, uint64_t limit_ns,
                                  struct err *err);

// ---- parts of harness_launch ----

// Looks at everything that the launch of this arm may have written (exec/harness_check.c).
MUST_CHECK int harness_check(struct harness *harness, enum arm_index arm, struct case_data *data,
                             size_t slot, struct err *err);
// Called after the launch of any arm, with the candidate's processor time before it and the launch's
// wall time: the candidate's clock must stand still while another runs.
MUST_CHECK int harness_check_turn(struct harness *harness, enum arm_index arm, uint64_t before_ns,
                                  double wall_ns);

#endif
