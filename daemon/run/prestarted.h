// Processes of kcast-exec that stay. Each answers plans one after another, in frames on its stdin
// and stdout: a length of 4 bytes, little-endian, and that many bytes. Its first frame is empty and
// says that it is ready. A process is unused until its first plan, whose group it then serves for
// the rest of its life. Called by executors.c alone.
#ifndef DAEMON_RUN_PRESTARTED_H
#define DAEMON_RUN_PRESTARTED_H

#include "common/clock.h"
#include "daemon/run/child.h"

struct prestarted;     // one process
struct prestarted_set; // all processes of one daemon that stay

#define PRESTARTED_GROUPS_MAX 4   // groups with an idle process, for each mode and argument
#define PRESTARTED_START_MS 60000 // from a process's start to its ready frame
#define PRESTARTED_IDLE_NS                                                                         \
    (300 * 1000000000ULL) // a group's process is ended after being idle so long
#define PRESTARTED_RETRY_MAX_NS (64 * 1000000000ULL) // longest pause between starts that fail
// An unused process that has been missing for so long is started beside a plan.
#define PRESTARTED_STARVED_NS (500 * 1000000ULL)

struct prestarted_config {
    const char *mode;            // first argument of kcast-exec
    const char *argument;        // second argument; NULL: none
    bool on_device;              // the argument is a GPU, of which the process makes a context
    const char *group;           // not NULL; all plans with an empty group share their processes
    bool fresh;                  // only a process that has answered no plan
    struct cgroup_limits limits; // of the process and its descendants
    uint64_t grace_ms;           // from SIGTERM to SIGKILL
};

// One plan for a process, and who is told of its answer.
struct prestarted_question {
    size_t outcome_max;   // bytes of the outcome; the process is killed when it writes more
    uint64_t deadline_ms; // from when the process is ready and has the plan
    // The process is ready, and the plan is on its way to it. May be NULL. May be called within
    // prestarted_ask.
    void (*on_plan)(void *owner);
    // The outcome is there; the callee takes it. It then calls prestarted_give_back or
    // prestarted_retire, before it returns or later, unless on_end comes first. If the process
    // writes anything before that it is killed.
    void (*on_outcome)(void *owner, struct bytes *outcome);
    // The process has ended, before its outcome or after prestarted_retire. end->ok is always
    // false.
    void (*on_end)(void *owner, const struct child_end *end);
    void *owner;
};

// The first process of a mode and argument is ready (failure is NULL), or has not become ready.
typedef void prestarted_first(void *owner, const char *failure);

// children and clock outlive the set.
struct prestarted_set *prestarted_set_create(struct children *children, const struct clock *clock);
// No process may be left. NULL is fine.
void prestarted_set_free(struct prestarted_set *set);
// Starts no more unused processes and ends all processes that owe no answer.
void prestarted_set_stop(struct prestarted_set *set);
// Keeps `count` unused processes of this mode and argument; group and fresh do not matter. Those
// on a device are started one after the other for each, and the first of the whole set alone. One
// that was used is replaced when nothing is being asked of that device, so that the start disturbs
// no measurement; but after PRESTARTED_STARVED_NS in any case, and at once when none is left. An
// idle process of the empty group counts as unused. on_first, which may be NULL, is called once,
// perhaps within this call.
void prestarted_set_fill(struct prestarted_set *set, const struct prestarted_config *config,
                         size_t count, prestarted_first *on_first, void *owner);
// Whether an unused process of this mode and argument is being started and none is ready; group and
// fresh do not matter. Who asks for one now has to wait for it.
bool prestarted_set_is_starting(const struct prestarted_set *set,
                                const struct prestarted_config *config);
// Has on_started called whenever a process that was being started is ready or has failed.
void prestarted_set_watch(struct prestarted_set *set, void (*on_started)(void *owner), void *owner);
// Called once a second: starts missing unused processes, after a failure only after a pause that
// doubles with each one, and ends processes that have been idle for PRESTARTED_IDLE_NS.
void prestarted_set_tick(struct prestarted_set *set);

// Returns an idle process of the group, else an unused process, else a new one. prestarted_ask must
// follow at once. On failure (as child_start) nothing has changed.
MUST_CHECK int prestarted_set_take(struct prestarted **ret, struct prestarted_set *set,
                                   const struct prestarted_config *config, struct err *err);
// Sends the plan as soon as the process is ready. One of the question's callbacks follows, never
// inside this call.
void prestarted_ask(struct prestarted *prestarted, const struct prestarted_question *question,
                    struct bytes *plan_taken);
// After the outcome: the process is idle again, and the caller must not use it any more.
void prestarted_give_back(struct prestarted *prestarted);
// After the outcome: the process is to end. Its stdin is closed, and SIGTERM follows after the
// grace period. on_end follows.
void prestarted_retire(struct prestarted *prestarted);
// Sends SIGTERM now. on_end follows.
void prestarted_stop(struct prestarted *prestarted);

#endif
