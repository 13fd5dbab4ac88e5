// What the daemon consists of, as one thing that is handed to every module that needs several of
// the others. daemon.c owns and fills it; everybody else reads it, at the time of need, because a
// part may be made later than the module that uses it. Declares, and includes nothing.
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

// What the daemon was told to keep to.
struct daemon_limits {
    size_t compile_slots;     // compilations at once
    uint64_t compile_seconds; // that one compilation may take
    uint64_t slack_ms;        // by which kcast-exec may exceed what its plan allows
    uint64_t grace_ms;        // from SIGTERM to SIGKILL
    size_t queue_max;         // unfinished jobs of one search
    size_t jobs_max;          // jobs altogether
    bool sandbox_off;         // for development: children are not confined
    bool exclusive;           // compilations and measurements exclude each other
    bool share_gpus;          // other programs may use the GPUs too
};

struct daemon_parts {
    uv_loop_t *loop;
    const struct clock *clock;
    struct daemon_limits limits;
    const char *state_dir;
    const char *http;    // where monitoring is served, as a url; NULL: nowhere
    uint64_t started_ns; // when it began to serve
    // Promises and files.
    struct ledger *ledger;
    struct blob_store *blobs;
    const struct secret *secret;
    // What measures and what compiles.
    struct executors *executors;
    struct devices *devices;
    struct compiler *compiler;
    struct setups *setups;
    // Jobs and their way.
    struct job_table *jobs;
    struct account_table *accounts;
    struct submissions *submissions;
    struct scheduler *scheduler;
    struct lifecycle *lifecycle;
    struct completions *completions;
    struct counters *counters;
    // Callers.
    struct service *service;
    struct waits *waits;
    struct answers *answers;
    struct administration *administration;
    struct budgets *budgets;
};

#endif
