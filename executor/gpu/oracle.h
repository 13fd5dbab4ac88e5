// The oracle: a process of its own, with a CUDA context of its own, that runs the reference and holds
// what outputs should be. Expected values are never in the memory that a candidate's device code can
// reach. It makes the inputs itself, from the seed; outputs come to it through a window of host memory.
//
// One request at a time. ORACLE errors are ours or the problem's, never the candidate's.
#ifndef EXECUTOR_GPU_ORACLE_H
#define EXECUTOR_GPU_ORACLE_H

#include "executor/gpu/gpu.h"
#include "problem/problem.h"
#include <sys/types.h>

#define ORACLE_WINDOW ((size_t)64 << 20)

struct oracle {
    pid_t pid; // 0: none
    int socket;
    unsigned char *window; // shared
    bool registered;       // with our driver
    struct digest setup;   // what it has been given
};

// The content of a case.
struct oracle_content {
    struct shape_case shape;
    uint64_t seed, case_index, number;
};

// What became of the comparison of one output.
struct oracle_answer {
    uint64_t wrong, first; // elements outside the bound, and the index of the first
    double got, expected;  // of that one
    double max_error;      // largest |error| / (u S)
};

// Forks the oracle for the GPU. Call before this process has touched the driver.
MUST_CHECK int oracle_start(struct oracle *oracle, const char *uuid, struct err *err);
// Waits until its context is there.
MUST_CHECK int oracle_ready(struct oracle *oracle, struct err *err);
void oracle_stop(struct oracle *oracle);

// The problem and the packed object of its reference; nothing when it has these already.
MUST_CHECK int oracle_setup(struct oracle *oracle, const struct bytes *problem,
                            const struct bytes *reference, struct err *err);
// Tells it to compute what is expected for the content: it does so while the caller goes on.
MUST_CHECK int oracle_expect(struct oracle *oracle, const struct oracle_content *content,
                             struct err *err);
// Compares an output in gpu's memory with what is expected for the content. Nothing of a candidate may be
// running. from: where the output is.
MUST_CHECK int oracle_check(struct oracle *oracle, struct gpu *gpu,
                            const struct oracle_content *content, size_t tensor, cu_pointer from,
                            size_t bytes, struct oracle_answer *ret, struct err *err);

#endif
