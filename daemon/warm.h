// Processes of kcast-exec that stay. Each answers plans one after another, by frames on its stdin
// and stdout: 4 bytes of length, little-endian, and so many bytes; an empty frame first says that
// it is ready. A process serves one group for its life; a spare has not been used yet and serves
// whoever comes first. executor.c asks, nobody else.
#ifndef DAEMON_WARM_H
#define DAEMON_WARM_H

#include "daemon/child.h"

struct warm;  // one process
struct warms; // all of one daemon

#define WARM_GROUPS_MAX 4                      // with an idle process, per mode and argument
#define WARM_START_MS 60000                    // from its start to the ready frame
#define WARM_IDLE_NS (300 * 1000000000ULL)     // then the process of a group is ended
#define WARM_RETRY_MAX_NS (64 * 1000000000ULL) // between attempts to start a spare

struct warm_config {
    const char *mode;
    const char *argument; // NULL: none
    const char *group;    // "": all plans may share it; not NULL
    bool fresh;           // never a process that has answered a plan
    struct cgroup_limits limits;
    uint64_t grace_ms;
};

struct warm_question {
    size_t report_max;    // bytes of the answer; one more and the process is killed
    uint64_t deadline_ms; // from when the process is ready and has the plan
    // The answer, which the callee takes; it then calls warm_give_back or warm_retire before it
    // returns.
    void (*on_report)(void *owner, struct bytes *report);
    // The process has ended, before the answer or after warm_retire. end->ok says nothing then.
    void (*on_end)(void *owner, const struct child_end *end);
    void *owner;
};

struct warms *warms_create(struct children *children);
void warms_free(struct warms *warms); // no process may be left; NULL is fine
// Starts no more spares; ends all processes that answer nobody.
void warms_stop(struct warms *warms);
// Keeps count spares of this mode and argument (group and fresh do not matter). They are replaced
// as they are used up: where there is an argument (a device) only while no process of this kind
// answers, so that a start disturbs no measurement. A process of group "" counts as a spare.
void warms_keep_spares(struct warms *warms, const struct warm_config *config, size_t count);
// Once a second: spares that could not be started are tried again (later and later), idle processes
// ended.
void warms_tick(struct warms *warms);

// An idle process of the group, else a spare, else a new one. Ask it at once.
MUST_CHECK int warms_take(struct warm **ret, struct warms *warms, const struct warm_config *config,
                          struct err *err);
// Sends the plan, when the process is ready. One of the question's callbacks follows, never inside.
void warm_ask(struct warm *warm, const struct warm_question *question, struct bytes *plan_taken);
// The answer is there, others may have the process. It must not be used any more.
void warm_give_back(struct warm *warm);
// The answer is there, and it was the last one: stdin is closed, SIGTERM after the grace. on_end
// follows.
void warm_retire(struct warm *warm);
// SIGTERM now. on_end follows.
void warm_stop(struct warm *warm);

#endif
