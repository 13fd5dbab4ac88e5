// The parts of a daemon, as one struct that every module gets which uses several of them. daemon.c
// owns the parts and fills the struct. A module keeps a pointer to the struct and reads a member
// when it needs it, because some parts are made later than the modules that use them. This header
// only declares the types.
#ifndef DAEMON_STATE_PARTS_H
#define DAEMON_STATE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct account_table;
struct answers;
struct blob_store;
struct budgets;
struct clock;
struct compiler;
struct devices;
struct completions;
struct executors;
struct job_table;
struct ledger;
struct lifecycle;
struct administration;
struct scheduler;
struct secret;
struct service;
struct setups;
struct submissions;
struct counters;
struct waits;

// Which measurements may have the same process of a GPU, one after the other.
enum share_processes {
    SHARE_PROCESSES_TENANT, // those of one tenant
    SHARE_PROCESSES_ALL,
    SHARE_PROCESSES_SEARCH, // those of one search
};

// Limits and switches from the daemon's options.
struct daemon_limits {
    size_t compile_slots;     // compilations at the same time
    uint64_t compile_seconds; // processor time of one compilation
    uint64_t slack_ms;        // by how much kcast-exec may exceed the time that its plan allows
    uint64_t grace_ms;        // time from SIGTERM to SIGKILL
    size_t queue_max;         // unfinished jobs of one search
    size_t jobs_max;          // jobs in the job table
    const char *python;       // the interpreter that records candidates in Python
    bool sandbox_off;         // for development: child processes are not confined
    bool exclusive;           // compilations and measurements never run at the same time
    enum share_processes share_processes;
    bool share_gpus;  // other programs may use the GPUs during a measurement
    bool no_unsealed; // no candidate runs unsealed here, whoever asks for it
};

struct daemon_parts {
    uv_loop_t *loop;
    const struct clock *clock;
    struct daemon_limits limits;
    const char *state_dir;
    const char *http;    // URL of the monitoring; NULL when it is not served
    uint64_t started_ns; // monotonic time at which the daemon began to serve
    // What is kept on disk.
    struct ledger *ledger;
    struct blob_store *blobs;
    const struct secret *secret;
    // What compiles and measures.
    struct executors *executors;
    struct devices *devices;
    struct compiler *compiler;
    struct setups *setups;
    // Jobs, from submission to completion.
    struct job_table *jobs;
    struct account_table *accounts;
    struct submissions *submissions;
    struct scheduler *scheduler;
    struct lifecycle *lifecycle;
    struct completions *completions;
    struct counters *counters;
    // Requests and replies.
    struct service *service;
    struct waits *waits;
    struct answers *answers;
    struct administration *administration;
    struct budgets *budgets;
};

#endif
