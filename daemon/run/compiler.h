// Compilations: a cache by content, equal ones in flight done once, and a bounded pool of
// kcast-exec children. Knows nothing of jobs.
#ifndef DAEMON_RUN_COMPILER_H
#define DAEMON_RUN_COMPILER_H

#include "common/digest.h"
#include "daemon/run/compile_input.h"
#include "daemon/run/executors.h"
#include "daemon/state/parts.h"
#include "daemon/store/blob.h"
#include "daemon/store/ledger.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COMPILER_ATTEMPTS 2 // runs of the jail before a compilation is given up

struct compiler;
struct compile_task;

struct compile_answer {
    const struct compiled
        *compiled;  // verdict NONE: compiled->object is stored. NULL: lost, see reason
    double seconds; // spent on this request now; 0 when it came from the cache
    const char
        *reason; // why it was lost (the jail failed, the source is gone, …); no one's verdict
    enum job_cause cause; // the same in one word, for the jobs that end by it
};

// Embedded in what waits for a compilation; zeroed before use. on_done runs on the loop thread,
// never inside compiler_request.
struct compile_request {
    void (*on_done)(struct compile_request *request, const struct compile_answer *outcome);
    void *owner; // the requester's
    // The compiler's:
    struct compile_task *task;
    struct compile_request *prev;
    struct compile_request *next;
};

// What it asks and tells; scheduler.h has the daemon's.
struct compiler_events {
    bool (*may_start)(void *owner); // whether a child may be started now
    // A child has ended after so many seconds: something else may start.
    void (*on_idle)(void *owner, double seconds);
    void *owner;
};

// parts outlive it; limits, blobs, ledger and executors are used.
struct compiler *compiler_create(const struct daemon_parts *parts,
                                 const struct compiler_events *events);
// Kills what runs, without callbacks to requests. Freed when the last child has gone; compiler_busy
// says.
void compiler_stop(struct compiler *compiler);
void compiler_free(struct compiler *compiler); // nothing may be under way; NULL is fine

void compiler_request(struct compiler *compiler, struct compile_request *request,
                      const struct compile_input *input);
// on_done will not run. What nobody else waits for is dropped or killed. No-op when
// it is done.
void compiler_cancel(struct compiler *compiler, struct compile_request *request);
// The object of a compilation is missing or damaged: the next request compiles again.
void compiler_forget(struct compiler *compiler, const struct compile_input *input);

// Keeps as many processes for cuda sources ready as there are slots.
void compiler_keep_ready(struct compiler *compiler);
// Starts what may be started.
void compiler_kick(struct compiler *compiler);
// Once a second: tries again what has found the disk full.
void compiler_tick(struct compiler *compiler);
size_t compiler_running(const struct compiler *compiler); // children
// Compilations that wait for a slot; 0 while the disk is full, when none would be started.
size_t compiler_waiting(const struct compiler *compiler);
// The last object found no room on the disk, and there is something to be compiled.
bool compiler_is_held(const struct compiler *compiler);
bool compiler_busy(const struct compiler *compiler); // anything at all under way

#endif
