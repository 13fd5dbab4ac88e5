// One process of kcast-exec and its three pipes, whatever it is used for: started in a session, an
// environment and a control group of its own, ended by SIGTERM, grace and SIGKILL, and gone for
// good when its end is told. Knows nothing of plans and reports; daemon/run/executors.h does.
#ifndef DAEMON_RUN_CHILD_H
#define DAEMON_RUN_CHILD_H

#include "common/err.h"
#include "common/mem.h"
#include "daemon/run/cgroup.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct child;
struct children; // all of one daemon

#define CHILD_REASON_MAX 512
#define CHILD_HEAD_MAX 8 // bytes in front of what is written

// path: of kcast-exec. cgroups: each child gets a group there; NULL: none; it stays the caller's
// and outlives the children. Makes this process the reaper of orphaned descendants.
MUST_CHECK int children_create(struct children **ret, uv_loop_t *loop, const char *path,
                               struct cgroups *cgroups, struct err *err);
void children_free(struct children *children); // none may be left; NULL is fine
size_t children_count(const struct children *children);
// SIGKILL to everything at once, without waiting. Signal-safe it is not.
void children_kill(struct children *children);
// Ends orphans of children that are gone, and removes their groups. Called after each end; also by
// whoever wants to be sure.
void children_sweep(struct children *children);

struct child_end {
    bool ok;    // exit code 0, nothing was wrong before, stdout was read to its end
    bool stuck; // it does not even die by SIGKILL; it is still there
    char reason[CHILD_REASON_MAX]; // one sentence, when not ok
};

struct child_config {
    const char *mode;            // first argument: "compile", …
    const char *argument;        // second; NULL: none
    uint64_t grace_ms;           // SIGTERM to SIGKILL
    struct cgroup_limits limits; // of the child and all that comes of it, where there are groups
    // Bytes of its stdout, valid during the call. The child may be terminated or killed from there.
    void (*on_output)(void *owner, const char *data, size_t len);
    // Runs exactly once, on the loop thread, never inside a function of this header; nothing runs
    // after it. The child must not be used any more.
    void (*on_end)(void *owner, const struct child_end *end);
    void *owner;
};

// On failure nothing runs and on_end is not called.
MUST_CHECK int child_start(struct child **ret, struct children *children,
                           const struct child_config *config, struct err *err);
// Writes head (at most CHILD_HEAD_MAX bytes, copied), then *body_taken, and then, when last, ends
// its stdin. Only when child_is_writing says no. What a child does not read is no failure here.
void child_write(struct child *child, const void *head, size_t head_len, struct bytes *body_taken,
                 bool last);
bool child_is_writing(const struct child *child);
void child_close_input(struct child *child);

// It is terminated in ms unless this is called again before; 0: never. what goes on from
// "kcast-exec MODE": "did not end within its deadline"; it outlives the limit.
void child_limit(struct child *child, uint64_t ms, const char *what);
// SIGTERM now, SIGKILL after the grace. "kcast-exec MODE what" is the end's reason, unless
// something was wrong before. No effect on one that is being ended already.
void child_terminate(struct child *child, const char *what);
// SIGKILL now; reason as above, also when it has been terminated. No effect on one that has been
// killed.
void child_kill(struct child *child, const char *what);
// Whether it has had a signal or has ended: what it writes from now on means nothing.
bool child_is_ending(const struct child *child);

#endif
