// What the parts of the oracle's process share: oracle_process.c (requests, expected outputs),
// oracle_reference.c (running the reference) and oracle_compare.c (comparing outputs with what is
// expected, running the baseline alone). No other file includes this.
#ifndef EXECUTOR_GPU_ORACLE_PROCESS_H
#define EXECUTOR_GPU_ORACLE_PROCESS_H

#include "executor/gpu/input_set.h"
#include "executor/gpu/oracle_wire.h"
#include "executor/gpu/program/program.h"
#include "executor/measurement.h"

#define SETUPS_MAX 8
// Input sets of one case whose outputs are kept: those of verification and a timed launch's.
#define CACHE_ENTRIES (MEASURE_CONTENTS + 1)
// Which arena for recordings the reference has, if it is recorded; the baseline has the other.
#define ORACLE_RECORDED 1

// The expected outputs for one input set, in the arena `outputs`.
struct expected {
    bool complete;
    struct input_set set;
    struct guarded_buffer value[PROBLEM_TENSOR_MAX]; // in double
    struct guarded_buffer scale[PROBLEM_TENSOR_MAX]; // error scale of each element, in double
};

// A problem and its reference.
struct oracle_setup {
    struct digest name;
    struct problem *problem;
    struct program *reference;
};

struct oracle_process {
    struct gpu gpu;
    int socket;                            // to the caller
    struct arena theirs;                   // the caller's open one
    struct oracle_setup setup[SETUPS_MAX]; // that are loaded; the process owns them
    size_t setup_count;
    struct problem *problem; // of the setup in use; NULL: none is
    struct program *reference;
    struct arena outputs;                 // has the entries' outputs
    struct expected cache[CACHE_ENTRIES]; // all of one case
    size_t cache_count;                   // entries in use
    size_t computing; // sets for which something is queued that nobody has waited for
};

// Finds the expected outputs of the set, or queues computing them: whoever has waited
// (oracle_process_settle) has them. They are the process's until the outputs of another case, or of
// another timed launch, are asked for. ERR_LIMIT when there is no room for them beside others of
// the case.
MUST_CHECK int oracle_process_have(struct oracle_process *p, const struct input_set *set,
                                   struct expected **ret, struct err *err);
// The same, and where there is no room for them all others are forgotten. Nothing that uses these
// may be queued.
MUST_CHECK int oracle_process_need(struct oracle_process *p, const struct input_set *set,
                                   struct expected **ret, struct err *err);
// Gives back what lies behind `placed` in an arena, and its memory beyond `bytes`; no memory after
// a program has not ended, since it may be using it.
void oracle_process_give_back(struct oracle_process *p, struct arena *arena, size_t placed,
                              size_t bytes);
// Queues running the reference on the set, whose outputs have been placed. ERR_INVALID or
// ERR_LIMIT when it cannot be launched.
MUST_CHECK int oracle_process_compute(struct oracle_process *p, const struct input_set *set,
                                      const struct tensor_sizes *sizes, struct expected *entry,
                                      struct err *err);
// Waits for all that is queued, if outputs are being computed. ERR_INVALID when the reference
// fails, or has failed before, ERR_SYSTEM when the GPU has: the process is of no use any more.
MUST_CHECK int oracle_process_settle(struct oracle_process *p, struct err *err);
// A call has failed with rc. Returns rc, or where outputs are being computed the error of that: a
// fault is reported by whichever call comes next.
int oracle_process_blame(struct oracle_process *p, int rc, struct err *err);
// Places all tensors in the arena `open`, which must have been rewound, where a measurement has
// them, and sets tensors->tensor. They are not filled.
MUST_CHECK int oracle_process_place(struct oracle_process *p, const struct tensor_sizes *sizes,
                                    struct guarded_buffer live[static PROBLEM_TENSOR_MAX],
                                    struct program_tensors *tensors, struct err *err);
// Queues what a program's scratch memory must hold before a run.
MUST_CHECK int oracle_process_ready(struct oracle_process *p, struct program *program,
                                    struct err *err);
// Compares `count` outputs, which lie in the caller's arena, with what is expected: answers ret[0
// .. count).
MUST_CHECK int oracle_process_check(struct oracle_process *p, const struct oracle_output *outputs,
                                    size_t count, uint64_t hash_key, struct oracle_answer *ret,
                                    struct err *err);
// Runs the packed baseline on the set and sets reply->failed, and reply->text when it did.
MUST_CHECK int oracle_process_alone(struct oracle_process *p, const struct bytes *baseline,
                                    const struct oracle_request *request,
                                    struct oracle_reply *reply, struct err *err);

#endif
