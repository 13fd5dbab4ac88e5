// The workbench: one GPU, one problem, the arms (baseline, candidate, a copy of the baseline) and the
// tensors they share. Every launch goes through here, so that each is prepared and checked the same way.
// What is measured and in which order is not its concern (executor/gpu/measure.c puts it behind struct
// measure_ops).
//
// Design notes. The arms get the same addresses for every tensor: neither is favoured by where memory
// lies, and an answer remembered by address is wrong for the next contents. Before a run outputs and
// scratch memory are poisoned, inout tensors restored, device variables reset, shared memory overwritten;
// afterwards guards and inputs are compared and the outputs hashed. Outputs whose keyed hash equals that
// of outputs which the oracle has found right for the same contents are right; all others go to the
// oracle. So every launch, timed or not, is verified.
#ifndef EXECUTOR_GPU_BENCH_H
#define EXECUTOR_GPU_BENCH_H

#include "executor/gpu/content.h"
#include "executor/gpu/oracle.h"
#include "executor/gpu/program.h"
#include "executor/measurement.h"

// The verified outputs of one arm for one content.
struct bench_verified {
    bool known;
    uint64_t hash[PROBLEM_TENSOR_MAX][2];
};

// One case.
struct bench_trial {
    const struct measure_case *of;
    struct content_sizes sizes;
    uint64_t number[MEASURE_CONTENTS]; // which contents the slots hold
    struct bench_verified verified[ARM_COUNT][MEASURE_CONTENTS];
};

// What one timed launch took.
struct bench_time {
    double ns;       // between the events before and after it
    double clock_hz; // of a multiprocessor meanwhile; NaN: unknown
};

struct bench {
    struct gpu *gpu;                 // set by the caller
    struct oracle *oracle;           // set by the caller
    struct measurement *measurement; // with the bench between bench_open and bench_release
    const struct measure_plan *plan; // the measurement's
    struct problem *problem;         // the measurement's
    struct program *arm[ARM_COUNT];  // NULL: not there. The reference is the oracle's
    struct area live[PROBLEM_TENSOR_MAX];
    struct area store[MEASURE_CONTENTS][PROBLEM_TENSOR_MAX]; // inputs of the slots
    const struct bench_trial *placed;
    size_t slot; // whose inputs are in live
    uint64_t input_hash[MEASURE_CONTENTS][PROBLEM_TENSOR_MAX][2];
    struct gpu_zones zones;
    uint64_t guard_key, hash_key;
    cu_event begin, end;
    uint64_t launch_limit_ns;
    double baseline_ns; // of the slowest launch of the baseline so far; 0: none yet
};

// Functions return 0, MEASURE_STOP or an error.

// The events. gpu and oracle are set already; they and the measurement must outlive the bench.
MUST_CHECK int bench_open(struct bench *bench, struct measurement *measurement, struct err *err);
// All but gpu and oracle; also of a bench that was not opened.
void bench_release(struct bench *bench);

// *of must outlive the trial, which has nothing to be released.
MUST_CHECK int bench_trial_init(struct bench *bench, struct bench_trial *trial,
                                const struct measure_case *of, struct err *err);
// Tells the oracle to compute what is expected for the trial's contents.
MUST_CHECK int bench_announce(struct bench *bench, const struct bench_trial *trial,
                              struct err *err);
// Puts the trial on the bench: memory, inputs of all slots, arguments of the given arms (bits 1 <<
// enum arm_index). MEASURE_STOP when the candidate cannot be launched.
MUST_CHECK int bench_place(struct bench *bench, struct bench_trial *trial, unsigned arms,
                           struct err *err);
// Another content in a slot: its outputs have to be verified anew. The trial must be placed.
MUST_CHECK int bench_renew(struct bench *bench, struct bench_trial *trial, size_t slot,
                           uint64_t number, struct err *err);

// One launch of the arm on the contents of the slot, verified. It is timed when time is not NULL: then the
// caches are as the problem says. The host waits for each launch before it queues the next: launches that
// follow each other without a pause take up to 1 us more or less by their place in the queue, on an H200
// (docs/measuring.md).
MUST_CHECK int bench_launch(struct bench *bench, struct bench_trial *trial, enum arm_index arm,
                            size_t slot, struct bench_time *time, struct err *err);

#endif
