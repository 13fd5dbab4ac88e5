// The harness: holds inputs and expected outputs and has the runners launched.
// executor/cpu/measure.c calls it. It must not know what is measured in which order. Every launch,
// timed or not, goes through harness_launch, so that every launch is prepared and checked in the
// same way.
//
// Design notes. Whatever a candidate could gain time from is kept from it:
//
// - Each launch is on contents that its arm has never had. They are made in memory that no runner
//   maps, and copied into the tensors while every runner is parked, that is asleep until the
//   harness wakes it. A runner's processor clock that moves while it is parked is a verdict.
// - Before a launch the harness fills the outputs with values that no correct result has. After the
//   launch, when the arm is parked, it copies them, and only the copy is looked at. So an arm finds
//   nothing of another's outputs and changes nothing of them, although all arms have the same
//   memory: the place of its pages makes up to 1 % of a short launch's time, and must favour none.
// - Every byte round the tensors holds a pattern with a secret key, new for each superblock.
// - harness_renew replaces the processes of both arms by fresh ones.
//
// The outputs of the baseline and of the other arm for the same contents are compared. What differs
// more than it did in launches that the reference has accepted goes to the reference, beside those
// launches that were drawn beforehand without the candidate's knowledge.
#ifndef EXECUTOR_CPU_HARNESS_H
#define EXECUTOR_CPU_HARNESS_H

#include "executor/cpu/buffer.h"
#include "executor/cpu/runner_process.h"
#include "executor/input_table.h"
#include "executor/measurement.h"
#include "executor/sandbox/zygote.h"

// What the harness holds for a case: sizes of its tensors and what their contents follow from.
struct case_data {
    const struct measure_case *of;
    size_t count[PROBLEM_TENSOR_MAX]; // elements
    size_t bytes[PROBLEM_TENSOR_MAX];
    size_t last[PROBLEM_TENSOR_MAX];               // extent of the last axis
    struct input_table *table[PROBLEM_TENSOR_MAX]; // of inputs; NULL until the case is timed
    // The largest squared distance, summed over the elements of an output, between two arms'
    // outputs that the reference has accepted, on contents from `values` alone; negative: none yet.
    double distance[PROBLEM_TENSOR_MAX];
    unsigned char *stale[PROBLEM_TENSOR_MAX]; // an output of earlier contents, malloc'd; NULL: none
};

// The outputs of one launch, copied. One pointer for each output tensor, owned by the harness.
struct kept_outputs {
    unsigned char *tensor[PROBLEM_TENSOR_MAX];
};

struct harness {
    struct zygote *zygote;           // set by the caller
    struct measurement *measurement; // borrowed until harness_release, as are the next two
    const struct measure_plan *plan;
    const struct problem *problem;
    struct runner_process runner[ARM_COUNT];
    struct buffer input[PROBLEM_TENSOR_MAX];  // tensors that are read only, shared by all runners
    struct buffer output[PROBLEM_TENSOR_MAX]; // tensors that are written, shared by the same
    // The inputs of inout tensors as the reference has them, which it must not change.
    struct buffer pristine[PROBLEM_TENSOR_MAX];
    struct buffer expected[PROBLEM_TENSOR_MAX]; // outputs of the reference, as doubles
    struct buffer scale[PROBLEM_TENSOR_MAX];    // error scales by the reference, as doubles
    const struct case_data *placed;             // the case whose sizes the buffers have; NULL: none
    unsigned arms;                              // of the last harness_renew
    // The contents in memory of the harness, and whose they are; made_for NULL: nobody's.
    unsigned char *content[PROBLEM_TENSOR_MAX];
    const struct case_data *made_for;
    uint64_t made_number;
    // Outputs of the launches on a content with an even and an odd number: of the baseline, and of
    // the arm that is compared with it.
    struct kept_outputs kept[2][2];
    uint64_t guard_key;
    unsigned char *flush; // for problems with cold caches: twice the last-level cache
    size_t flush_bytes;
    uint64_t launch_limit_ns, reference_limit_ns;
    double wake_ns; // usual excess of a launch's wall time over its processor time
};

// Functions that return int return 0, MEASURE_STOP or an error.

// Makes buffers for the largest of the cases and starts a runner for each arm that the plan needs,
// the candidate's when all others have loaded their objects. Then measures an empty launch.
// MEASURE_STOP when the candidate cannot be loaded.
MUST_CHECK int harness_start(struct harness *harness, const struct shape_case *const *shape,
                             size_t shape_count, struct err *err);
void harness_release(struct harness *harness);

// *of must outlive *data. Release *data after a failure too.
MUST_CHECK int harness_case_init(struct harness *harness, struct case_data *data,
                                 const struct measure_case *of, struct err *err);
void harness_case_release(struct harness *harness, struct case_data *data);
// Prepares the case for contents that are made quickly: from MEASURE_CONTENTS on.
void harness_case_timed(struct harness *harness, struct case_data *data);

// Gives the arms (bits 1 << enum arm_index) fresh processes and ends those of all others but the
// reference. Places the case, and fills everything round its tensors with a new pattern.
MUST_CHECK int harness_renew(struct harness *harness, struct case_data *data, unsigned arms,
                             struct err *err);
// Checks every byte round the outputs, if the last harness_renew was for this case. What is wrong
// is the candidate's doing if it was among the arms.
MUST_CHECK int harness_check_all(struct harness *harness, struct case_data *data, struct err *err);

// Launches the arm on a content of the case, keeps its outputs, and checks what it may have written
// elsewhere. time may be NULL.
MUST_CHECK int harness_launch(struct harness *harness, enum arm_index arm, struct case_data *data,
                              uint64_t number, struct launch_time *time, struct err *err);

// Runs the reference on the content and verifies the kept outputs of this arm for it, which must be
// those of its last launch on a number of that parity.
MUST_CHECK int harness_judge(struct harness *harness, enum arm_index arm, struct case_data *data,
                             uint64_t number, struct err *err);
// Compares the kept outputs of `second` with those of the baseline for the same content. Outputs
// that differ more than accepted ones did, or that are to be judged anyway, are judged.
MUST_CHECK int harness_compare(struct harness *harness, enum arm_index second,
                               struct case_data *data, uint64_t number, bool judge,
                               struct err *err);

// ---- parts that the files of the harness share ----

// Returns the memory of a tensor as this arm sees it.
struct buffer *harness_buffer(struct harness *harness, enum arm_index arm, size_t tensor);
// Returns the kept outputs of an arm for a content with this number.
struct kept_outputs *harness_kept(struct harness *harness, enum arm_index arm, uint64_t number);
// Makes the content in memory of the harness, unless it is there.
void harness_content_make(struct harness *harness, const struct case_data *data, uint64_t number);
// Copies the content into the tensors of the arm. Every runner must be parked.
void harness_content_write(struct harness *harness, enum arm_index arm,
                           const struct case_data *data);
// Places the tensors of the case in all buffers, with new guards, and fills everything else of the
// memory of outputs.
void harness_place(struct harness *harness, const struct case_data *data);
// MEASURE_STOP when the candidate has run since it was parked.
MUST_CHECK int harness_check_turn(struct harness *harness);
// Handles a runner that did not complete a launch. If it is the candidate's, that is its verdict;
// otherwise it is an error. where is the case (input_values_where), or "".
MUST_CHECK int harness_runner_failed(struct harness *harness, enum arm_index index,
                                     enum launch_outcome outcome, const char *where,
                                     uint64_t limit_ns, struct err *err);
// Called when the baseline has failed with rc on a content of the case. Runs it once more without
// the candidate. Returns rc when it fails again; otherwise the candidate is to blame.
MUST_CHECK int harness_baseline_failed(struct harness *harness, struct case_data *data,
                                       uint64_t number, int rc, struct err *err);

#endif
