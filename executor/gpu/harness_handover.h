// The handover: how a candidate that runs unsealed gets its inputs and gives its outputs. Part of
// the GPU harness, which alone calls it.
//
// Design note. Such a candidate has host code, and so a process of its own
// (executor/gpu/unsealed/unsealed.h) with a context of its own. The two processes share one piece
// of device memory, in which the tensors of the case lie, and nothing else:
//
//   tensors of the harness (`live`)           shared memory            the candidate's process
//   inputs, made before  ──copied──▶  inputs  ──────────────────────▶  reads them
//   outputs              ◀──copied──  outputs ◀──────────────────────  writes them
//
// The clock runs from before the first copy to after the last one. So the candidate does not see an
// input before its time runs, and what it writes after its time is compared with nothing: only the
// copy is. The baseline, whose tensors are `live`, has its inputs and outputs copied as well, to
// shared memory. That the candidate is told to run and answers is in its time alone.
//
// Between the shared tensors lies a pattern, as everywhere, whose key is none of the measurement's
// random numbers.
#ifndef EXECUTOR_GPU_HARNESS_HANDOVER_H
#define EXECUTOR_GPU_HARNESS_HANDOVER_H

#include "executor/gpu/harness.h"
#include "executor/gpu/unsealed/unsealed.h"

struct gpu_handover {
    struct unsealed process;
    bool ended;                                       // it has been closed
    struct arena arena;                               // the shared memory, in one piece
    struct guarded_buffer tensor[PROBLEM_TENSOR_MAX]; // of the placed case, in it
    struct record_case *cases;                        // all cases of the candidate; owned
    size_t case_count;
    size_t placed;           // index of the placed case
    struct gpu_zones guards; // all of the shared memory but the tensors
    uint64_t guard_key;      // of the pattern in it
    double ns;               // between the two readings of the clock, of the last launch
};

// Functions that return int return 0, MEASURE_STOP or an error.

// Makes the shared memory, starts the process, measures what an empty run takes (which becomes the
// measurement's overhead), and has the process load the candidate. gpu_handover_close follows in
// any case.
MUST_CHECK int gpu_handover_open(struct gpu_harness *harness, struct err *err);
// Ends the process, and sets harness->retire when that has left something behind. No effect without
// a handover, and the second time.
void gpu_handover_end(struct gpu_harness *harness);
// Ends the process and frees everything. No effect without a handover.
void gpu_handover_close(struct gpu_harness *harness);

// Places the tensors of a case in the shared memory.
MUST_CHECK int gpu_handover_place(struct gpu_harness *harness, const struct gpu_case *data,
                                  struct err *err);
// Has the process prepare for the placed case. Nothing may be queued.
MUST_CHECK int gpu_handover_enter(struct gpu_harness *harness, const struct gpu_case *data,
                                  struct err *err);
// Queues filling what lies between the tensors with the pattern of a new key.
MUST_CHECK int gpu_handover_fill(struct gpu_harness *harness, struct err *err);
// Queues comparing it with that: the result words from WORD_HANDOVER on.
MUST_CHECK int gpu_handover_check(struct gpu_harness *harness, struct err *err);
// The tensor that an input of the arm's was read from: the shared one of the candidate's.
const struct guarded_buffer *gpu_handover_input(const struct gpu_harness *harness,
                                                enum arm_index arm, size_t tensor);

// The parts of a launch: poisons the shared outputs and waits for all that is queued; queues
// copying the inputs; waits for that and has the candidate run; queues copying the outputs.
MUST_CHECK int gpu_handover_ready(struct gpu_harness *harness, struct err *err);
MUST_CHECK int gpu_handover_give(struct gpu_harness *harness, struct err *err);
MUST_CHECK int gpu_handover_run(struct gpu_harness *harness, const struct gpu_case *data,
                                uint64_t content, uint64_t limit_ns, struct err *err);
MUST_CHECK int gpu_handover_take(struct gpu_harness *harness, enum arm_index arm, struct err *err);

#endif
