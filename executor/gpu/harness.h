// The GPU harness: launches the programs of one measurement and verifies what they computed. It
// owns the programs (baseline, candidate, a second load of the baseline), the tensors that they
// share and the events that time them. executor/gpu/measure.c alone calls it. It must not know what
// is measured and in which order.
//
// Design note. Every launch goes through gpu_harness_launch, timed or not, so that each is prepared
// and verified in the same way.
//
// - All that code of a candidate can address of the executor's memory is one arena (gpu->open). Of
//   each case it holds the tensors, which the arms share at the same addresses, the scratch memory
//   of the arms, the memory that flushes the cache, and two stamps. Every other byte holds a
//   pattern, and so does the scratch memory of an arm while the arm does not run.
//   gpu_harness_inspect finds whoever has written elsewhere.
// - What no launch may see is in another arena (gpu->judge), which is closed while one runs: values
//   of device variables and contents of recordings. It is one piece of memory.
// - Outputs that wait for the oracle are kept in the open arena: of timed launches while no code of
//   a candidate runs, of verification while the same arm runs on the next content. The oracle makes
//   the digest of such an output again, which shows that it is what the launch had left.
// - Inputs are made in place before the first of two timed launches on a content, and before every
//   other launch, and compared with what they must be after each but the baseline's timed ones.
// - Before a launch, outputs and shared memory are poisoned; after it, device variables and scratch
//   memory are given back what they had.
// - The oracle compares outputs with what is expected: all that is launched for verification, those
//   of one arm and case at once, and of the timed launches those that the caller picks and those
//   whose digest does not look like the baseline's.
#ifndef EXECUTOR_GPU_HARNESS_H
#define EXECUTOR_GPU_HARNESS_H

#include "executor/gpu/input_set.h"
#include "executor/gpu/oracle.h"
#include "executor/gpu/program/program.h"
#include "executor/measurement.h"

// What is known of an output without looking at it again: the result words of a digest.
struct output_digest {
    uint64_t hash[2];
    double sum;          // of the finite elements, each with a secret sign
    uint64_t not_finite; // how many elements are not
    double max_error;    // what the oracle has found, when it has compared this very output
};

// The digests of all outputs of one launch.
struct launch_digest {
    bool known;
    bool accepted; // by the oracle; only of launches for verification
    uint64_t content;
    struct output_digest output[PROBLEM_TENSOR_MAX];
};

// What the harness keeps for one case of the measurement.
struct gpu_case {
    const struct measure_case *of;
    struct tensor_sizes sizes;
    // The last launch of each arm on an even and on an odd content.
    struct launch_digest last[ARM_COUNT][2];
    // The largest difference between the sums of the arm and of the baseline, for the same content,
    // among outputs that the oracle has accepted, on contents from the tensors' `values` alone.
    double accepted[ARM_COUNT][PROBLEM_TENSOR_MAX];
    double baseline_ns; // of the slowest launch of the baseline so far; 0: none yet
};

// What one timed launch took.
struct gpu_launch_time {
    double ns;       // between the events before and after the launch
    double clock_hz; // average clock of a multiprocessor during the launch; NaN: not known
};

struct gpu_handover;
struct recorder;

struct gpu_harness {
    struct gpu *gpu;                 // set by the caller
    struct oracle *oracle;           // set by the caller
    struct recorder *recorder;       // set by the caller; NULL: no candidate runs unsealed
    struct measurement *measurement; // borrowed from gpu_harness_open to gpu_harness_release
    const struct measure_plan *plan; // borrowed from the measurement
    struct problem *problem;         // borrowed from the measurement
    struct program *arm[ARM_COUNT];  // owned; NULL: not loaded. The oracle has the reference.
    struct guarded_buffer live[PROBLEM_TENSOR_MAX]; // what the programs work on
    struct guarded_buffer kept[PROBLEM_TENSOR_MAX]; // outputs of an earlier launch
    uint64_t pair;   // the content of the last timed launch; 0: none since the pattern was filled
    bool live_waits; // the outputs of the last launch wait for the oracle, in `live`
    bool kept_waits; // those of the launch of verification before it do, in `kept`
    struct gpu_handover *handover; // of a candidate that runs unsealed; NULL: it does not
    const struct gpu_case *placed; // the case that the buffers are placed for; NULL: none
    unsigned arms;                 // that are placed, bits 1 << enum arm_index
    struct gpu_zones elsewhere;    // all of the open arena but tensors, stamps and flushing memory
    uint64_t pattern_key;          // of what `elsewhere` holds
    size_t patterned;              // bytes of the open arena that hold it where nothing lies
    size_t used;                   // where the last area ended when the pattern was filled
    bool must_restore;             // an arm that is placed has memory to be restored after a launch
    bool inspected;                // nothing has been launched since it was compared
    bool candidate_ran;            // the candidate has been launched in this measurement
    bool candidate_here;           // it has been launched since `elsewhere` was filled
    bool retire;                   // the process must not be used for another measurement
    bool doubtful;                 // a launch of the candidate with a short limit ended it
    uint64_t hash_key, sign_key;   // secrets of this measurement
    uint64_t stamp_key[2];         // of the stamps of the current launch
    cu_event begin, end;           // around a timed launch
    uint64_t launch_limit_ns;      // after this time any launch has failed
};

// Functions that return int return 0, MEASURE_STOP or an error.

// Makes the events and measures what an empty launch takes. gpu, oracle and recorder must be set,
// everything else is overwritten. They and measurement must outlive the use of the harness.
MUST_CHECK int gpu_harness_open(struct gpu_harness *harness, struct measurement *measurement,
                                struct err *err);
// Releases everything except gpu, oracle and recorder. Also fine when gpu_harness_open was not
// called or failed.
void gpu_harness_release(struct gpu_harness *harness);

// Has memory for the largest case of the problem, so that placing one after the other takes none of
// the driver's time, and gives back what larger problems have left, which would have to be looked
// at. What the programs need beside tensors comes when they are placed.
MUST_CHECK int gpu_harness_reserve(struct gpu_harness *harness, const struct shape_case *hidden,
                                   size_t hidden_count, struct err *err);
// Initialises the data of a case, which owns nothing. *of must outlive it.
MUST_CHECK int gpu_harness_case_init(struct gpu_harness *harness, struct gpu_case *data,
                                     const struct measure_case *of, struct err *err);
// Places the case, unless it is placed for the same arms (bits 1 << enum arm_index): inspects what
// was placed before, places tensors, prepares the arms' programs and fills everything else with a
// pattern. Returns MEASURE_STOP when the candidate cannot be launched.
MUST_CHECK int gpu_harness_place(struct gpu_harness *harness, struct gpu_case *data, unsigned arms,
                                 struct err *err);

// Looks at every byte of the open arena that nobody may write to, unless nothing has been launched
// since the last time. The candidate is stopped when it may have written there. Takes 0.3 ms for a
// GiB on an H200.
MUST_CHECK int gpu_harness_inspect(struct gpu_harness *harness, struct err *err);
// Fills it with the pattern, where it does not hold it anyway. The case must be placed and
// inspected.
MUST_CHECK int gpu_harness_refill(struct gpu_harness *harness, struct err *err);

// Launches the arm once on a content of the case. The case must be placed with this arm. Contents
// below MEASURE_CONTENTS are for verification: outputs whose digest the oracle has not accepted
// before wait for gpu_harness_judge, at most those of two launches. Of other contents the digest is
// kept, and of arms other than the baseline the outputs. When `time` is not
// NULL, the caches are in the state that the problem asks for, and the launch is timed. The host
// waits for each launch before it queues the next. Without that, launches take up to 1 us more or
// less depending on their place in the queue, on an H200 (docs/measuring.md).
MUST_CHECK int gpu_harness_launch(struct gpu_harness *harness, struct gpu_case *data,
                                  enum arm_index arm, uint64_t content,
                                  struct gpu_launch_time *time, struct err *err);

// Has the oracle compare the outputs of verification that wait, which are the arm's.
MUST_CHECK int gpu_harness_judge(struct gpu_harness *harness, struct gpu_case *data,
                                 enum arm_index arm, struct err *err);

// Verifies the last launch of the arm on this content, which the baseline has had too: compares the
// two digests and, when they differ too much or `judge` is set, the kept outputs with what is
// expected.
MUST_CHECK int gpu_harness_verify(struct gpu_harness *harness, struct gpu_case *data,
                                  enum arm_index arm, uint64_t content, bool judge,
                                  struct err *err);

#endif
