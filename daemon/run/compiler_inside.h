// What compiler.c (requests and runs), compile_slots.c (who runs next) and compile_task.c (how a
// task ends) share. Nobody else includes it.
#ifndef DAEMON_RUN_COMPILER_INSIDE_H
#define DAEMON_RUN_COMPILER_INSIDE_H

#include "daemon/run/compiler.h"
#include <uthash.h>

enum task_state { TASK_LOOKUP, TASK_WAITING, TASK_LOADING, TASK_RUNNING, TASK_STORING };

struct compile_task {
    struct compiler *compiler;
    struct digest key;
    enum task_state state;
    bool orphan; // no request is left, and it is not in the table
    bool fresh;  // the cache is not looked into
    bool slow;   // it is recorded, in an interpreter; known when its source has been read
    unsigned attempts;
    struct compile_input input;       // owns its texts; what is needed is in the requests
    struct compile_known known;       // what the cache has of it; owns its features
    struct compile_input asked;       // as in the plan of the last run; borrows from input
    struct compile_request *requests; // list of those who wait
    uint64_t number;                  // lower ones are older
    uint64_t tenant, search;          // whose slot it has while it has one
    uint64_t waits_since_ns;          // WAITING
    double waited_s;                  // how long it has waited for slots
    struct executor *executor;        // RUNNING
    struct compile_outcome outcome;   // of the last run
    bool has_outcome;
    struct err unread;         // why the outcome could not be read
    double seconds;            // of runs so far
    struct compile_task *prev; // WAITING list
    struct compile_task *next;
    UT_hash_handle hh;
};

// A tenant or a search with tasks under way.
struct slot_share {
    uint64_t number;
    size_t count;
    UT_hash_handle hh;
};

struct compiler {
    const struct daemon_parts *parts;
    struct compiler_events events;
    struct compile_task *tasks;   // by key
    struct compile_task *waiting; // list
    size_t waiting_count;
    struct slot_share *tenants;  // by number
    struct slot_share *searches; // by number
    size_t slots_used;
    size_t slots_slow;  // of them, those of recordings
    size_t under_way;   // tasks that exist
    uint64_t made;      // tasks so far
    size_t recorded_on; // the device that the next candidate may be recorded on, as a number
    unsigned held;      // ticks until something is compiled again after a full disk
    bool full;          // the last object found no room
    bool stopping;
};

// The task waits for a slot from now on.
void compile_slots_wait(struct compile_task *task);
// The task, which waits, no longer does.
void compile_slots_leave(struct compile_task *task);
// Returns the task that is to have a slot now, which no longer waits and has it; NULL when none is.
struct compile_task *compile_slots_take(struct compiler *compiler);
// The task turns out to be slow. Returns whether it may keep the slot that it has.
bool compile_slots_keep_slow(struct compile_task *task);
// The task gives its slot back.
void compile_slots_free(struct compile_task *task);

// Frees the task. Nobody is told.
void compile_task_free(struct compile_task *task);
// Takes the task out of the table of keys: a new request for its key starts another task.
void compile_task_leave_table(struct compile_task *task);
// Whether the compilation has what the request needs.
bool compile_covers(const struct compiled *compiled, const struct compile_request *request);
// Tells those requesters whose needs the answer covers, and the first one that it is charged for
// answer->seconds, which is 0 afterwards. A lost compilation covers every need.
void compile_task_tell(struct compile_task *task, struct compile_answer *answer);
// Forgets what the cache has of it.
void compile_task_forget_known(struct compile_task *task);
// Tells every requester whose needs are covered what was compiled, and frees the task. The others
// ask again.
void compile_task_finish(struct compile_task *task, const struct compiled *compiled);
// Tells every requester that the compilation is lost, and frees the task.
void compile_task_lose(struct compile_task *task, enum job_cause cause, const char *reason);
// Stores the object, if there is one, and then the cache entry of task->outcome, and finishes the
// task.
void compile_task_store(struct compile_task *task);

#endif
