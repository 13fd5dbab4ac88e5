// What passes between the harness and a runner: the spec with which the runner starts, datagrams on
// a socket, and a shared page. Both ends include it: executor/cpu/runner_process.c,
// executor/cpu/runner_launch.c and executor/cpu/runner.c.
//
// A runner is two processes (executor/cpu/runner.h). Only the harness and the clean parent hold the
// socket. The page belongs to the child, in which the candidate runs: the candidate can write to
// the whole of it, so the harness trusts nothing that it reads there.
#ifndef EXECUTOR_CPU_CONTROL_H
#define EXECUTOR_CPU_CONTROL_H

#include "executor/sandbox/sandbox.h"
#include "problem/problem.h"
#include <stdatomic.h>
#include <stdint.h>

// Pointers of a call: at most three for each tensor, for an inout tensor of the reference.
#define CONTROL_POINTER_MAX (3 * PROBLEM_TENSOR_MAX)
#define RUNNER_TEXT_MAX 512
// Unmapped bytes before and after a mapped tensor.
#define CONTROL_EDGE ((size_t)1 << 20)

enum control_command {
    CONTROL_CALL = 1, // call the entry
    CONTROL_NOTHING,  // answer at once, to measure the cost of a launch without the candidate
};

// Why a child ended, as it says itself.
enum control_trap {
    TRAP_NONE = 0,
    TRAP_CALL,  // a refused system call, its number in trap_value
    TRAP_ABORT, // abort()
};

// The page is all zero when a child is forked, so that it carries nothing from one child to the
// next.
struct control {
    // Three futexes. For a launch the harness writes the call, then a fresh random nonce to go, and
    // wakes the child. The child answers by writing the nonce to done, and waits on go. The harness
    // then moves it from go to park without waking it: a child that was moved sleeps, and nobody
    // but the harness can wake it.
    _Atomic uint32_t go;
    _Atomic uint32_t done;
    _Atomic uint32_t park; // its value means nothing
    uint32_t command;      // enum control_command
    uint32_t trap;         // enum control_trap
    uint32_t trap_value;
    uint64_t offset[CONTROL_POINTER_MAX]; // bytes from the start of a mapping to its tensor
    int64_t integer[PROBLEM_PARAM_MAX];   // integer parameters of the call
    double scalar[PROBLEM_PARAM_MAX];     // floating-point parameters of the call
};

// From the harness to the clean parent: fork a child. hello is the nonce that the child writes to
// done when it is ready.
struct runner_request {
    uint32_t hello;
};

// From the runner to the harness. Everything is from the clean parent but MESSAGE_CHILD.
enum runner_message_kind {
    MESSAGE_CONFINED = 1, // the sandbox is complete, and the object is loaded next
    MESSAGE_LOADED,       // the object is loaded, and requests are served
    MESSAGE_SETUP_FAILED, // see text; the fault is not the object's
    MESSAGE_LOAD_FAILED,  // see text
    MESSAGE_LOAD_CALL,    // a refused system call while the object was loaded, its number in value
    MESSAGE_LOAD_ABORT,   // abort() while the object was loaded
    MESSAGE_CHILD,        // from a child. The kernel adds to the message which process that is
};

struct runner_message {
    uint32_t kind; // enum runner_message_kind
    uint32_t value;
    char text[RUNNER_TEXT_MAX];
};

// The exit status of a child whose system call filter cannot be loaded.
#define RUNNER_EXIT_UNFILTERED 3

// A shared memory object that a runner maps for pointer i: descriptor RUNNER_FIRST_MAP + i of those
// it is given.
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

// The descriptors that a runner is given.
enum runner_descriptor {
    RUNNER_CONTROL,   // the control page
    RUNNER_OBJECT,    // the object, sealed
    RUNNER_OUTPUT,    // a non-blocking pipe for stdout and stderr
    RUNNER_SOCKET,    // the socket
    RUNNER_FIRST_MAP, // the tensors, from here on
};

// What a runner is told when it starts.
struct runner_spec {
    enum child_role role;
    uint64_t object_size;
    uint64_t max_memory;          // bytes of address space beside the tensors
    uint64_t cpu_seconds;         // limit by which the kernel ends an endless loop
    uint32_t index;               // number of the runner, part of its file's name
    uint32_t preload_vector_math; // the object needs libmvec
    uint32_t map_count;
    struct runner_map map[CONTROL_POINTER_MAX];
};

#endif
