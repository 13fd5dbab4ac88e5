// One process of kcast-exec and its three pipes, whatever it is used for. It is started in a
// session, with an environment and in a control group of its own. It is ended by SIGTERM, a grace
// period and SIGKILL, and nothing of it is left when its end is told. Called by executors.c and
// prestarted.c. Knows nothing of plans and outcomes.
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
struct children; // all processes of one daemon

#define CHILD_REASON_MAX 512 // bytes of a sentence, its NUL included
#define CHILD_HEAD_MAX 8     // bytes that may be written in front of a body

// path is the program, kcast-exec. Each child gets a control group of its own in cgroups, which the
// caller owns and which outlives the children; NULL means no control groups. scratch is the folder
// for the children's temporary files, as environment_create has it. Makes this process the reaper
// of orphaned descendants. ERR_SYSTEM when the program cannot be run.
MUST_CHECK int children_create(struct children **ret, uv_loop_t *loop, const char *path,
                               const char *scratch, struct cgroups *cgroups, struct err *err);
// No child may be left. NULL is fine.
void children_free(struct children *children);
size_t children_count(const struct children *children);
// Sends SIGKILL to every child at once and does not wait. Must not be called from a signal handler.
void children_kill(struct children *children);
// Kills and reaps orphans of children that have ended, and removes empty control groups. Runs by
// itself after each child's end; may be called at any other time too.
void children_sweep(struct children *children);

struct child_end {
    bool ok;    // the exit code is 0, nothing went wrong before, stdout was read to its end
    bool stuck; // it does not even die by SIGKILL, so the process is still there
    char reason[CHILD_REASON_MAX]; // one sentence when ok is false, else empty
};

struct child_config {
    const char *mode;            // first argument, for example "compile"
    const char *argument;        // second argument; NULL: none
    uint64_t grace_ms;           // from SIGTERM to SIGKILL
    struct cgroup_limits limits; // of the child and its descendants, where there are control groups
    // Receives bytes of the child's stdout; they are valid during the call. The callee may
    // terminate or kill the child.
    void (*on_output)(void *owner, const char *data, size_t len);
    // Called exactly once, on the loop thread, and never inside a function of this header. No other
    // callback follows, and the child must not be used any more.
    void (*on_end)(void *owner, const struct child_end *end);
    void *owner;
};

// Starts the process. On failure nothing runs and on_end is not called. ERR_SYSTEM when the host
// cannot start a process or make its control group.
MUST_CHECK int child_start(struct child **ret, struct children *children,
                           const struct child_config *config, struct err *err);
// Writes head (at most CHILD_HEAD_MAX bytes, which are copied) and then *body_taken to the child's
// stdin, and closes the stdin afterwards when last is true. May be called only when
// child_is_writing() is false. It is no error here when the child does not read.
void child_write(struct child *child, const void *head, size_t head_len, struct bytes *body_taken,
                 bool last);
bool child_is_writing(const struct child *child);
void child_close_input(struct child *child);

// Terminates the child after ms milliseconds, unless this is called again before then; 0 takes the
// limit back. `what` completes the reason "kcast-exec MODE …", for example "did not end within its
// deadline"; the text must live as long as the limit.
void child_limit(struct child *child, uint64_t ms, const char *what);
// Sends SIGTERM now and SIGKILL after the grace period. "kcast-exec MODE what" becomes the reason
// of the end, unless something went wrong before. No effect on a child that is being ended already.
void child_terminate(struct child *child, const char *what);
// Sends SIGKILL now, also to a child that has been terminated. The reason is set as above. No
// effect on a child that has been killed.
void child_kill(struct child *child, const char *what);
// Whether it has been sent a signal or has ended. Its output means nothing from then on.
bool child_is_ending(const struct child *child);

#endif
