// The process of a candidate that runs unsealed: with its host code, in the recorder's jail, told
// by messages what to do. The GPU harness uses it (executor/gpu/harness_handover.c), which owns the
// memory that both see, the inputs, the clock and the comparison. Nothing that comes from this
// process is believed but that it has answered; what an answer says is at most the sentence of its
// own failure.
#ifndef EXECUTOR_GPU_UNSEALED_UNSEALED_H
#define EXECUTOR_GPU_UNSEALED_UNSEALED_H

#include "executor/gpu/record/recorder.h"
#include "executor/gpu/record/request.h"
#include "proto/verdict.h"

#define UNSEALED_FAILED 1 // returned beside 0 and errors: the candidate has failed

struct unsealed_plan {
    const char *python;  // the interpreter; NULL: python3
    bool sandbox_off;    // as in measure_plan
    double host_seconds; // limit of all that the candidate takes outside of its runs
    double run_seconds;  // limit of all its runs together
};

// Why a candidate has failed.
struct unsealed_failure {
    enum verdict verdict;
    char *reason; // one sentence; owned by whoever has the failure
};

struct unsealed {
    struct recorder *recorder;    // borrowed
    int socket;                   // to the process; -1: there is none
    uint64_t left_ns;             // of host_seconds
    double host_seconds;          // as planned
    unsigned char *answer;        // UNSEALED_ANSWER_MAX bytes
    bool lost;                    // the process had to be killed, or has not ended as it should
    struct recorder_report ended; // how it has ended, when the socket is -1
};

// Starts the interpreter, where it is not running, and in it a process for this request, whose
// memory for tensors is that of the descriptor. request->cpu_seconds is set here. The recorder
// outlives it. unsealed_close follows in any case. ERR_UNSUPPORTED when this host has no
// interpreter with PyTorch.
MUST_CHECK int unsealed_open(struct unsealed *u, struct recorder *recorder,
                             const struct unsealed_plan *plan, struct record_request *request,
                             int memory, struct err *err);
// Has it queue next to nothing, before there is code of the candidate in it.
MUST_CHECK int unsealed_empty(struct unsealed *u, struct err *err);
// Loads the candidate. Returns 0, UNSEALED_FAILED with *ret, or an error.
MUST_CHECK int unsealed_begin(struct unsealed *u, struct unsealed_failure *ret, struct err *err);
// Goes to a case of the request, by its number. As unsealed_begin.
MUST_CHECK int unsealed_case(struct unsealed *u, uint32_t number, struct unsealed_failure *ret,
                             struct err *err);
// Runs the candidate once on what the tensors hold, and comes back when it says that the GPU has
// done it. As unsealed_begin. VERDICT_TIMEOUT when it has not answered after limit_ns.
MUST_CHECK int unsealed_run(struct unsealed *u, uint64_t limit_ns, struct unsealed_failure *ret,
                            struct err *err);
// Ends the process. Fine for one that is all zero but for a socket of -1. Returns whether the
// interpreter is as it was before; otherwise this process must not measure again.
bool unsealed_close(struct unsealed *u);

#endif
