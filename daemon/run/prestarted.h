// Processes of kcast-exec that stay. Each answers plans one after another, by frames on its stdin
// and stdout: 4 bytes of length, little-endian, and so many bytes; an empty frame first says that
// it is ready. A process serves one group for its life; a unused process has not been used yet and serves
// whoever comes first. executor.c asks, nobody else.
#ifndef DAEMON_RUN_PRESTARTED_H
#define DAEMON_RUN_PRESTARTED_H

#include "daemon/run/child.h"

struct prestarted;     // one process
struct prestarted_set; // all of one daemon

#define PRESTARTED_GROUPS_MAX 4                      // with an idle process, per mode and argument
#define PRESTARTED_START_MS 60000                    // from its start to the ready frame
#define PRESTARTED_IDLE_NS (300 * 1000000000ULL)     // then the process of a group is ended
#define PRESTARTED_RETRY_MAX_NS (64 * 1000000000ULL) // between attempts to start a unused process

struct prestarted_config {
    const char *mode;
    const char *argument; // NULL: none
    const char *group;    // "": all plans may share it; not NULL
    bool fresh;           // never a process that has answered a plan
    struct cgroup_limits limits;
    uint64_t grace_ms;
};

struct prestarted_question {
    size_t outcome_max;   // bytes of the answer; one more and the process is killed
    uint64_t deadline_ms; // from when the process is ready and has the plan
    // The answer, which the callee takes; it then calls prestarted_give_back or prestarted_retire, before it
    // returns or later, unless on_end comes first. What the process writes until then ends it.
    void (*on_outcome)(void *owner, struct bytes *outcome);
    // The process has ended, before the answer or after prestarted_retire. end->ok says nothing then.
    void (*on_end)(void *owner, const struct child_end *end);
    void *owner;
};

struct prestarted_set *prestarted_set_create(struct children *children);
void prestarted_set_free(
    struct prestarted_set *prestarted_set); // no process may be left; NULL is fine
// Starts no more unused processes; ends all processes that answer nobody.
void prestarted_set_stop(struct prestarted_set *prestarted_set);
// Keeps count unused processes of this mode and argument (group and fresh do not matter). They are replaced
// as they are used up: where there is an argument (a device) only while no process of this kind
// answers, so that a start disturbs no measurement. A process of group "" counts as a unused process.
void prestarted_set_fill(struct prestarted_set *prestarted_set,
                         const struct prestarted_config *config, size_t count);
// Once a second: unused processes that could not be started are tried again (later and later), idle processes
// ended.
void prestarted_set_tick(struct prestarted_set *prestarted_set);

// An idle process of the group, else a unused process, else a new one. Ask it at once.
MUST_CHECK int prestarted_set_take(struct prestarted **ret, struct prestarted_set *prestarted_set,
                                   const struct prestarted_config *config, struct err *err);
// Sends the plan, when the process is ready. One of the question's callbacks follows, never inside.
void prestarted_ask(struct prestarted *prestarted, const struct prestarted_question *question,
                    struct bytes *plan_taken);
// The answer is there, others may have the process. It must not be used any more.
void prestarted_give_back(struct prestarted *prestarted);
// The answer is there, and it was the last one: stdin is closed, SIGTERM after the grace. on_end
// follows.
void prestarted_retire(struct prestarted *prestarted);
// SIGTERM now. on_end follows.
void prestarted_stop(struct prestarted *prestarted);

#endif
