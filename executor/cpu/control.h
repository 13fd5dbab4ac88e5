// The page that harness and runner share, and what a runner is told when it starts. The harness trusts
// nothing that it reads here: the candidate can write to all of it.
#ifndef EXECUTOR_CPU_CONTROL_H
#define EXECUTOR_CPU_CONTROL_H

#include "executor/sandbox/sandbox.h"
#include "problem/problem.h"
#include <stdatomic.h>
#include <stdint.h>

// Pointers of a call: at most three per tensor (the reference's inout).
#define CONTROL_POINTER_MAX (3 * PROBLEM_TENSOR_MAX)
#define CONTROL_TEXT_MAX 512
// Bytes of nothing either side of a mapped tensor.
#define CONTROL_EDGE ((size_t)1 << 20)

enum control_command {
    CONTROL_CALL = 1, // call the entry
    CONTROL_NOTHING,  // answer at once: what a launch costs without the candidate
};

// Why a runner ended, by its own word.
enum control_trap {
    TRAP_NONE = 0,
    TRAP_CALL,  // a refused system call, its number in trap_value
    TRAP_ABORT, // abort()
    TRAP_LOAD,  // the object cannot be loaded, see text
    TRAP_SETUP, // the sandbox cannot be set up, see text
};

struct control {
    // Futexes. A launch is: judge writes the call and a fresh random nonce to go and wakes; the
    // runner answers with the nonce in done.
    _Atomic uint32_t go;
    _Atomic uint32_t done;
    uint32_t command;
    uint32_t trap;
    uint32_t trap_value;
    uint64_t offset[CONTROL_POINTER_MAX]; // of the tensor in its mapping, bytes
    int64_t integer[PROBLEM_PARAM_MAX];
    double scalar[PROBLEM_PARAM_MAX];
    char text[CONTROL_TEXT_MAX];
};

// A shared memory object that a runner maps for pointer[i]: descriptor 3 + i of what it is given.
struct runner_map {
    uint64_t size;
    bool writable;
};

// What a child becomes: the first bytes of every spec.
enum child_role {
    CHILD_RUNNER = 1,
    CHILD_JAIL,
    CHILD_CHECK_JAIL,
    CHILD_CHECK_RUNNER,
};

// Descriptors: 0 the control page, 1 the object, 2 where output goes (a pipe, not blocking), 3… the
// tensors.
struct runner_spec {
    enum child_role role;
    uint64_t object_size;
    uint64_t max_memory;          // bytes of address space beside the tensors
    uint64_t cpu_seconds;         // the last resort against a loop
    uint32_t hello;               // nonce that says "loaded" in control.done
    uint32_t index;               // of the runner: names its file
    uint32_t preload_vector_math; // the object needs libmvec
    uint32_t map_count;
    struct runner_map map[CONTROL_POINTER_MAX];
};

#endif
