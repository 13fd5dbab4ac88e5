// The process that children are cloned from.
//
// Theory of operation. kcast-exec forks the zygote before it reads its plan, so that neither the
// zygote nor any child ever holds the plan's secrets (the seed). Told by the first order whether
// there is a sandbox, the zygote enters namespaces and root (executor/sandbox/root.h) once; every further
// order clones one child, in a pid namespace of its own, with CLONE_PARENT: the child's parent is
// kcast-exec, which waits for it, reads its processor clock and kills it. Orders and answers are
// single datagrams on a socketpair; descriptors travel with them. The zygote runs trusted code
// only and ends with its socket.
#ifndef EXECUTOR_SANDBOX_ZYGOTE_H
#define EXECUTOR_SANDBOX_ZYGOTE_H

#include "common/err.h"
#include "executor/sandbox/sandbox.h"
#include <stddef.h>
#include <sys/types.h>

#define ZYGOTE_SPEC_MAX 8192
#define ZYGOTE_FD_MAX 120

// What a child gets.
struct zygote_child {
    const struct sandbox *sandbox;
    const void *spec; // the bytes given to zygote_spawn
    size_t spec_len;
    const int *fd; // the descriptors given to zygote_spawn
    size_t fd_count;
    int alive_fd;        // for sandbox_drop
    const void *context; // as given to zygote_create; memory of the zygote, not shared
};

struct zygote {
    pid_t pid; // 0: none
    int socket;
};

// Forks the zygote. child_main runs in every child; its return value is the child's exit status.
MUST_CHECK int zygote_create(struct zygote *zygote,
                             int (*child_main)(const struct zygote_child *child),
                             const void *context, struct err *err);

// Enters the sandbox. ERR_SANDBOX says what is missing; the zygote is then of no further use.
MUST_CHECK int zygote_enter(struct zygote *zygote, const struct sandbox *sandbox, struct err *err);

// Clones a child. The descriptors stay the caller's. *ret_pid is a child of the caller; whoever
// calls reaps it.
MUST_CHECK int zygote_spawn(struct zygote *zygote, const void *spec, size_t spec_len, const int *fd,
                            size_t fd_count, pid_t *ret_pid, struct err *err);

// Ends the zygote (its children live on) and reaps it.
void zygote_release(struct zygote *zygote);

#endif
