// The page that harness and runner share, and what a runner is told when it starts. Both ends
// include it: executor/cpu/runner_process.c and executor/cpu/runner.c. The candidate can write to
// the whole page, so the harness trusts nothing that it reads there.
#ifndef EXECUTOR_CPU_CONTROL_H
#define EXECUTOR_CPU_CONTROL_H

#include "executor/sandbox/sandbox.h"
#include "problem/problem.h"
#include <stdatomic.h>
#include <stdint.h>

// Pointers of a call: at most three for each tensor, for an inout tensor of the reference.
#define CONTROL_POINTER_MAX (3 * PROBLEM_TENSOR_MAX)
#define CONTROL_TEXT_MAX 512
// Unmapped bytes before and after a mapped tensor.
#define CONTROL_EDGE ((size_t)1 << 20)

enum control_command {
    CONTROL_CALL = 1, // call the entry
    CONTROL_NOTHING,  // answer at once, to measure the cost of a launch without the candidate
};

// Why a runner ended, as it says itself.
enum control_trap {
    TRAP_NONE = 0,
    TRAP_CALL,  // a refused system call, its number in trap_value
    TRAP_ABORT, // abort()
    TRAP_LOAD,  // the object cannot be loaded, see text
    TRAP_SETUP, // the sandbox cannot be set up, see text
};

struct control {
    // Both are futexes. For a launch the harness writes the call, then a fresh random nonce to go,
    // and wakes the runner. The runner answers by writing the nonce to done.
    _Atomic uint32_t go;
    _Atomic uint32_t done;
    uint32_t command; // enum control_command
    uint32_t trap;    // enum control_trap
    uint32_t trap_value;
    uint64_t offset[CONTROL_POINTER_MAX]; // bytes from the start of a mapping to its tensor
    int64_t integer[PROBLEM_PARAM_MAX];   // integer parameters of the call
    double scalar[PROBLEM_PARAM_MAX];     // floating-point parameters of the call
    char text[CONTROL_TEXT_MAX];          // sentence to TRAP_LOAD and TRAP_SETUP
};

// A shared memory object that a runner maps for pointer i: descriptor 3 + i of those it is given.
struct runner_map {
    uint64_t size;
    bool writable;
};

// What a child becomes. The first member of every spec.
enum child_role {
    CHILD_RUNNER = 1,
    CHILD_JAIL,
    CHILD_CHECK_JAIL,
    CHILD_CHECK_RUNNER,
};

// What a runner is told when it starts. Its descriptors are 0 the control page, 1 the object, 2 a
// non-blocking pipe for output, and from 3 on the tensors.
struct runner_spec {
    enum child_role role;
    uint64_t object_size;
    uint64_t max_memory;          // bytes of address space beside the tensors
    uint64_t cpu_seconds;         // limit by which the kernel ends an endless loop
    uint32_t hello;               // nonce that says "loaded" in control.done
    uint32_t index;               // number of the runner, part of its file's name
    uint32_t preload_vector_math; // the object needs libmvec
    uint32_t map_count;
    struct runner_map map[CONTROL_POINTER_MAX];
};

#endif
