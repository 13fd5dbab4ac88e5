// What the interpreter is asked, as JSON, and how it refuses. The request has the candidate, the
// problem, and for each case its values and where its tensors are. It is the same for a candidate
// that is recorded (executor/gpu/record/record.c) and for one that runs with its host code
// (executor/gpu/unsealed). Pure.
#ifndef EXECUTOR_GPU_RECORD_REQUEST_H
#define EXECUTOR_GPU_RECORD_REQUEST_H

#include "common/mem.h"
#include "executor/gpu/input_set.h"
#include "problem/problem.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <stdbool.h>

struct record_case {
    struct shape_case shape;
    struct tensor_sizes sizes;
    cu_pointer at[PROBLEM_TENSOR_MAX]; // addresses of the tensors
};

struct record_request {
    const struct bytes *source;
    const char *role; // of the source: "candidate", "baseline" or "reference"
    const struct problem *problem;
    const char *target;  // such as "sm_90"
    const char *device;  // uuid or number of the GPU; NULL: the first
    cu_pointer base;     // of the memory that the candidate allocates
    double cpu_seconds;  // of processor time, then the process is ended
    cu_pointer shared;   // of memory that it is given with the tensors in it
    size_t shared_bytes; // of that memory; 0: it is given none
    const struct record_case *cases;
    size_t case_count;
};

// Makes the request, which the caller clears. *ret_source_is_text is false when the source is no
// UTF-8; it is not in the request then.
MUST_CHECK int record_request_make(const struct record_request *what, struct bytes *ret,
                                   bool *ret_source_is_text, struct err *err);

// The verdict that a reply names, or `otherwise` where it names none of those that the interpreter
// may give: compile-error, rejected and crash.
enum verdict record_reply_verdict(const struct record_reply *reply, enum verdict otherwise);

#endif
