// What prestarted.c (processes and their plans) and prestarted_fill.c (which of them are kept
// unused) share. Nobody else includes it.
#ifndef DAEMON_RUN_PRESTARTED_INSIDE_H
#define DAEMON_RUN_PRESTARTED_INSIDE_H

#include "common/strbuf.h"
#include "daemon/run/prestarted.h"

// The processes of one mode and argument.
struct prestarted_kind {
    char *mode;
    char *argument; // NULL: none
    bool on_device;
    struct cgroup_limits limits;
    uint64_t grace_ms;
    size_t wanted;       // unused processes to be kept
    size_t asked;        // processes that owe an answer
    uint64_t quiet_ns;   // since when none does
    uint64_t missing_ns; // since when there are fewer unused ones than wanted; 0: there are not
    unsigned failures;   // processes in a row that ended before they were ready
    uint64_t retry_ns;   // no unused process is started before this time
    prestarted_first *on_first; // NULL: nobody is to be told, or has been told
    void *owner;                // of on_first
    struct prestarted_kind *next;
};

enum prestarted_state { PRESTARTED_STARTING, PRESTARTED_READY, PRESTARTED_LEAVING };

struct prestarted {
    struct prestarted_set *set;
    struct prestarted_kind *kind;
    struct child *child;
    enum prestarted_state state;
    char *group;   // NULL: unused
    bool asked;    // owes an answer to question
    bool answered; // its answer is complete and has not been given back yet
    struct prestarted_question question;
    struct bytes plan;       // to be sent when the process is ready
    struct strbuf answer;    // bytes of the frame so far
    uint64_t started_ns;     // when it was started
    uint64_t idle_ns;        // when it was given back
    struct prestarted *prev; // list of all, least recently used first
    struct prestarted *next;
};

struct prestarted_set {
    struct children *children;
    const struct clock *clock;
    struct prestarted_kind *kinds;   // in the order in which they were asked for
    struct prestarted *all;          // list
    void (*on_started)(void *owner); // NULL: nobody watches
    void *owner;                     // of on_started
    bool stopping;
};

// Starts an unused process. ERR_SYSTEM as child_start; nothing has changed then.
MUST_CHECK int prestarted_start(struct prestarted **ret, struct prestarted_set *set,
                                struct prestarted_kind *kind, struct err *err);

// The next are in prestarted_fill.c.

// Returns the kind of this mode and argument, which is made when it is new, with these limits.
struct prestarted_kind *prestarted_kind_of(struct prestarted_set *set,
                                           const struct prestarted_config *config);
// Starts what is missing and may be started now.
void prestarted_refill(struct prestarted_set *set);
// A process of the kind has not become ready: the next unused one is started after a pause.
void prestarted_start_failed(const struct prestarted_set *set, struct prestarted_kind *kind);
// Tells, once, how the first process of the kind has started; failure is NULL when it is ready.
void prestarted_tell_first(const struct prestarted_set *set, struct prestarted_kind *kind,
                           const char *failure);
// One process of the kind less owes an answer.
void prestarted_count_answered(const struct prestarted_set *set, struct prestarted_kind *kind);
// Tells who watches that a process is no longer being started.
void prestarted_tell_started(const struct prestarted_set *set);
// Whether both are the same text or both are NULL.
bool prestarted_same(const char *a, const char *b);

#endif
