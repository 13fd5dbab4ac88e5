// The harness: holds inputs, expected outputs and the verdict, and has the runners launched.
// executor/measure.c says what is measured and in which order, executor/cpu/paired_run.c does the timing; both launch
// through harness_launch, so that every launch is checked the same way.
//
// Design notes. Baseline and candidate share the same memory for every tensor, so that neither is
// favoured by where its pages lie. Inputs are sealed against writing. Before a launch the harness
// writes the inputs and poison into the outputs; after it, it copies the outputs and only then
// looks. An output equal, byte for byte, to one that was verified for the same contents is
// verified.
#ifndef EXECUTOR_CPU_HARNESS_H
#define EXECUTOR_CPU_HARNESS_H

#include "common/stats.h"
#include "executor/cpu/arm.h"
#include "executor/cpu/buffer.h"
#include "executor/sandbox/zygote.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/verdict.h"

enum arm_index { ARM_REFERENCE, ARM_BASELINE, ARM_CANDIDATE, ARM_CONTROL, ARM_COUNT };

#define TRIAL_CONTENTS 2

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
struct trial {
    const struct shape_case *shape;   // the problem's or the hidden list's
    uint64_t index;                   // among all cases: part of the inputs' key
    char *name;                       // "M=384 N=384 K=384"
    size_t count[PROBLEM_TENSOR_MAX]; // elements
    size_t bytes[PROBLEM_TENSOR_MAX];
    size_t last[PROBLEM_TENSOR_MAX]; // extent of the last axis
    struct content content[TRIAL_CONTENTS];
};

struct harness {
    const struct measure_plan *plan;
    struct problem *problem;
    struct zygote *zygote;
    struct arm arm[ARM_COUNT];
    struct buffer tensor[PROBLEM_TENSOR_MAX];
    struct buffer expected[PROBLEM_TENSOR_MAX]; // the reference's outputs, in double
    struct buffer scale[PROBLEM_TENSOR_MAX];
    unsigned char *copy[PROBLEM_TENSOR_MAX]; // where outputs are looked at
    const struct trial *placed;              // the case that the buffers are placed for
    struct stats_rng rng;                    // poison, order, keys
    uint64_t guard_key;
    unsigned char *flush; // 2 x last-level cache, for cold problems
    size_t flush_bytes;
    uint64_t launch_limit_ns, reference_limit_ns;
    double overhead_ns; // processor time of an empty launch
    double wake_ns; // what a launch's wall time exceeds its processor time by when nothing is wrong
    uint64_t out_of_turn_ns; // processor time of the candidate during others' launches
    uint64_t others_ns;      // wall time of those launches
    // What is reported.
    enum verdict verdict; // NONE while nothing is wrong with the candidate
    char *reason;
    uint64_t checks;               // verified launches
    double max_error, error_bound; // of the candidate; NaN: nothing was compared
    struct accounts seconds;
};

// What a judge function returns beside 0 and errors: the candidate has failed, verdict and reason
// are set.
#define HARNESS_STOP 1

// Buffers for the largest of the cases, runners for the given arms. Runners load in the background
// until harness_ready.
MUST_CHECK int harness_start(struct harness *harness, const struct shape_case *const *shape,
                             size_t shape_count, struct err *err);
// Waits for the runners. HARNESS_STOP when the candidate cannot be loaded.
MUST_CHECK int harness_ready(struct harness *harness, struct err *err);
void harness_release(struct harness *harness);

MUST_CHECK int harness_trial_init(struct harness *harness, struct trial *trial,
                                  const struct shape_case *shape, uint64_t index, struct err *err);
void harness_trial_release(struct trial *trial);

// Makes contents number `number` (any number: 0, 1, 2, …) in slot `slot` of the trial: inputs, and
// by the reference what is expected.
MUST_CHECK int harness_content_make(struct harness *harness, struct trial *trial, size_t slot,
                                    uint64_t number, struct err *err);

// Launches the arm on the contents and verifies everything. time may be NULL; its cpu is complete
// after arm_settle.
MUST_CHECK int harness_launch(struct harness *harness, enum arm_index arm, struct trial *trial,
                              size_t slot, struct launch_time *time, struct err *err);

// Sets verdict and reason (the first stays) and returns HARNESS_STOP.
int harness_stop(struct harness *harness, enum verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
