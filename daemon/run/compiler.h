// Compilations: a cache by content, equal ones in flight done once, and a bounded pool of
// kcast-exec children. Knows nothing of jobs.
#ifndef DAEMON_RUN_COMPILER_H
#define DAEMON_RUN_COMPILER_H

#include "common/digest.h"
#include "daemon/run/compile_input.h"
#include "daemon/run/executors.h"
#include "daemon/store/blob.h"
#include "daemon/store/ledger.h"
#include "proto/messages.h"
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
};

// Embedded in what waits for a compilation; zeroed before use. The callbacks run on the loop
// thread; on_done never inside compiler_request, on_miss perhaps.
struct compile_request {
    void (*on_miss)(
        struct compile_request *request); // not cached: it will be compiled. May be NULL
    void (*on_done)(struct compile_request *request, const struct compile_answer *outcome);
    void *owner; // the requester's
    // The compiler's:
    struct compile_task *task;
    struct compile_request *prev;
    struct compile_request *next;
};

struct compiler_config {
    struct blob_store *blobs;
    struct ledger *ledger;
    struct executors *executors;
    size_t slots;         // children at once
    uint64_t max_seconds; // of one compilation
    uint64_t slack_ms;    // by which kcast-exec may exceed that
    uint64_t grace_ms;    // SIGTERM to SIGKILL
    bool sandbox_off;
    bool (*may_start)(void *owner); // whether a child may be started now
    void (*on_idle)(void *owner,
                    double seconds); // a child has ended after so long: something else may start
    void *owner;
};

struct compiler *compiler_create(const struct compiler_config *config);
// Kills what runs, without callbacks to requests. Freed when the last child has gone; compiler_busy
// says.
void compiler_stop(struct compiler *compiler);
void compiler_free(struct compiler *compiler); // nothing may be under way; NULL is fine

void compiler_request(struct compiler *compiler, struct compile_request *request,
                      const struct compile_input *input);
// The request's callbacks will not run. What nobody else waits for is dropped or killed. No-op when
// it is done.
void compiler_cancel(struct compiler *compiler, struct compile_request *request);
// The object of a compilation is missing or damaged: the next request compiles again.
void compiler_forget(struct compiler *compiler, const struct compile_input *input);
// The key under which a compilation is cached.
struct digest compiler_key(const struct compiler *compiler, const struct compile_input *input);

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
