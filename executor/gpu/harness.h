// The GPU harness: launches the programs of one measurement and verifies what they computed. It
// owns the programs (baseline, candidate, a second load of the baseline), the tensors that they
// share and the events that time them. executor/gpu/measure.c alone calls it. It must not know what
// is measured and in which order.
//
// Design note. Every launch goes through gpu_harness_launch, timed or not, so that each is prepared
// and verified in the same way.
//
// - The arms get the same addresses for every tensor. So none is favoured by where its memory lies,
//   and a candidate that remembers an answer by address is wrong with the next input data.
// - A slot holds the input data of one set. The inputs of a slot are copied to the shared tensors
//   before it is used.
// - Before a launch, outputs and scratch memory are poisoned, in-out tensors and device variables
// are
//   restored and shared memory is overwritten.
// - After a launch, guard zones and inputs are compared with what they were, and the outputs are
//   hashed with a secret key. The oracle compares the outputs with what is expected, unless their
//   hash is that of outputs which it has accepted for the same arm and slot.
#ifndef EXECUTOR_GPU_HARNESS_H
#define EXECUTOR_GPU_HARNESS_H

#include "executor/gpu/input_set.h"
#include "executor/gpu/oracle.h"
#include "executor/gpu/program.h"
#include "executor/measurement.h"

// Hashes of the outputs of one arm for one slot that the oracle has accepted.
struct verified_outputs {
    bool known;
    uint64_t hash[PROBLEM_TENSOR_MAX][2];
};

// What the harness keeps for one case of the measurement.
struct gpu_case {
    const struct measure_case *of;
    struct tensor_sizes sizes;
    uint64_t number[MEASURE_CONTENTS]; // of the input set in each slot
    struct verified_outputs verified[ARM_COUNT][MEASURE_CONTENTS];
};

// What one timed launch took.
struct gpu_launch_time {
    double ns;       // between the events before and after the launch
    double clock_hz; // average clock of a multiprocessor during the launch; NaN: not known
};

struct gpu_harness {
    struct gpu *gpu;                 // set by the caller
    struct oracle *oracle;           // set by the caller
    struct measurement *measurement; // borrowed from gpu_harness_open to gpu_harness_release
    const struct measure_plan *plan; // borrowed from the measurement
    struct problem *problem;         // borrowed from the measurement
    struct program *arm[ARM_COUNT];  // owned; NULL: not loaded. The oracle has the reference.
    struct guarded_buffer live[PROBLEM_TENSOR_MAX];                    // what the programs work on
    struct guarded_buffer store[MEASURE_CONTENTS][PROBLEM_TENSOR_MAX]; // input data of the slots
    const struct gpu_case *placed; // the case that the buffers are placed for; NULL: none
    size_t slot;                   // whose input data is in live
    uint64_t input_hash[MEASURE_CONTENTS][PROBLEM_TENSOR_MAX][2]; // of the inputs in store
    struct gpu_zones zones;                                       // all guards of the placed case
    uint64_t guard_key, hash_key;                                 // secrets of this measurement
    cu_event begin, end;                                          // around a timed launch
    uint64_t launch_limit_ns; // after this time any launch has failed
    double baseline_ns;       // of the slowest timed launch of the baseline so far; 0: none yet
};

// Functions that return int return 0, MEASURE_STOP or an error.

// Makes the events and measures what an empty launch takes. gpu and oracle must be set, everything
// else is overwritten. gpu, oracle and measurement must outlive the use of the harness.
MUST_CHECK int gpu_harness_open(struct gpu_harness *harness, struct measurement *measurement,
                                struct err *err);
// Releases everything except gpu and oracle. Also fine when gpu_harness_open was not called or
// failed.
void gpu_harness_release(struct gpu_harness *harness);

// Initialises the data of a case, which owns nothing. *of must outlive it.
MUST_CHECK int gpu_harness_case_init(struct gpu_harness *harness, struct gpu_case *data,
                                     const struct measure_case *of, struct err *err);
// Has the oracle begin to compute the expected outputs for all slots of the case.
MUST_CHECK int gpu_harness_announce(struct gpu_harness *harness, const struct gpu_case *data,
                                    struct err *err);
// Places the case: allocates memory, makes the input data of all slots and prepares the programs in
// `arms`, a set of bits 1 << enum arm_index. Returns MEASURE_STOP when the candidate cannot be
// launched.
MUST_CHECK int gpu_harness_place(struct gpu_harness *harness, struct gpu_case *data, unsigned arms,
                                 struct err *err);
// Puts input set `number` into a slot. Its outputs have to be verified anew. The case must be
// placed.
MUST_CHECK int gpu_harness_renew(struct gpu_harness *harness, struct gpu_case *data, size_t slot,
                                 uint64_t number, struct err *err);

// Launches the arm once on the input data of the slot and verifies what it did. The case must be
// placed with this arm. When `time` is not NULL, the caches are in the state that the problem asks
// for, and the launch is timed. The host waits for each launch before it queues the next. Without
// that, launches take up to 1 us more or less depending on their place in the queue, on an H200
// (docs/measuring.md).
MUST_CHECK int gpu_harness_launch(struct gpu_harness *harness, struct gpu_case *data,
                                  enum arm_index arm, size_t slot, struct gpu_launch_time *time,
                                  struct err *err);

#endif
