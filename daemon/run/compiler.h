// Compilations: found in a cache by content, made once for all who ask at the same time, and run in
// a limited number of kcast-exec processes. Called by preparation, and by measure.c when an object
// is missing. Knows nothing of jobs.
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

#define COMPILER_ATTEMPTS 2 // runs of kcast-exec before a compilation is given up

struct compiler;
struct compile_task;

// What a request gets; valid during on_done.
struct compile_answer {
    // With verdict NONE its object is stored, for features only perhaps an incomplete one. NULL:
    // the compilation was lost, see reason.
    const struct compiled *compiled;
    double seconds;       // spent for this request; 0 when others or the cache had it
    const char *reason;   // why it was lost: kcast-exec failed, the source is missing, …
    enum job_cause cause; // the same in one word, for the jobs that end by it
};

// Embedded in what waits for a compilation; zeroed before use. on_done is called on the loop
// thread, never inside compiler_request.
struct compile_request {
    void (*on_done)(struct compile_request *request, const struct compile_answer *answer);
    void *owner;               // the requester's
    uint64_t tenant, search;   // numbers of those that it is for, who share the slots
    struct compile_task *task; // this and the rest belong to the compiler
    bool features_only;        // what is needed, as in struct compile_input
    bool machine_code;
    struct compile_request *prev;
    struct compile_request *next;
};

// What the compiler asks and tells; the daemon's implementation is in scheduler.h.
struct compiler_events {
    // Whether a process may be started now.
    bool (*may_start)(void *owner);
    // A process has ended after this many seconds, so something else may start.
    void (*on_idle)(void *owner, double seconds);
    void *owner;
};

// parts outlives the compiler; limits, blobs, ledger and executors are used.
struct compiler *compiler_create(const struct daemon_parts *parts,
                                 const struct compiler_events *events);
// Kills what runs; no request is told. compiler_free may be called when compiler_busy is false.
void compiler_stop(struct compiler *compiler);
// Nothing may be under way. NULL is fine.
void compiler_free(struct compiler *compiler);

// Compiles the input as far as it is needed, or finds it in the cache. What the cache has of it is
// not compiled again. The answer may have more than was needed. The texts of input are copied.
void compiler_request(struct compiler *compiler, struct compile_request *request,
                      const struct compile_input *input);
// on_done will not be called. A compilation that nobody else waits for is dropped or killed. No
// effect when the request is done.
void compiler_cancel(struct compiler *compiler, struct compile_request *request);
// The object of this compilation is missing or damaged: the next request compiles again.
void compiler_forget(struct compiler *compiler, const struct compile_input *input);

// Keeps as many processes for sealed cuda sources ready as there are slots, and one for those that
// are recorded.
void compiler_keep_ready(struct compiler *compiler);
// Starts waiting compilations as far as they may be started.
void compiler_kick(struct compiler *compiler);
// Called once a second: tries again after a full disk.
void compiler_tick(struct compiler *compiler);
// The number of slots in use.
size_t compiler_running(const struct compiler *compiler);
// The number of compilations that wait for a slot; 0 while the disk is full and none may be
// started.
size_t compiler_waiting(const struct compiler *compiler);
// Whether the last object found no room on the disk and there is still something to be compiled.
bool compiler_is_held(const struct compiler *compiler);
// Whether anything at all is under way.
bool compiler_busy(const struct compiler *compiler);

#endif
