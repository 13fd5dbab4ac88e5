// The process that children are cloned from.
//
// Theory of operation. kcast-exec forks the nursery before it reads its plan, so that neither the
// nursery nor any child ever holds the plan's secrets (the seed). Told by the first order whether
// there is a sandbox, the nursery enters namespaces and root (exec/root.h) once; every further
// order clones one child, in a pid namespace of its own, with CLONE_PARENT: the child's parent is
// kcast-exec, which waits for it, reads its processor clock and kills it. Orders and answers are
// single datagrams on a socketpair; descriptors travel with them. The nursery runs trusted code
// only and ends with its socket.
#ifndef EXEC_NURSERY_H
#define EXEC_NURSERY_H

#include "common/err.h"
#include "exec/sandbox.h"
#include <stddef.h>
#include <sys/types.h>

#define NURSERY_SPEC_MAX 8192
#define NURSERY_FD_MAX 120

// What a child gets.
struct nursery_child {
    const struct sandbox *sandbox;
    const void *spec; // the bytes given to nursery_spawn
    size_t spec_len;
    const int *fd; // the descriptors given to nursery_spawn
    size_t fd_count;
    int alive_fd;        // for sandbox_drop
    const void *context; // as given to nursery_create; memory of the nursery, not shared
};

struct nursery {
    pid_t pid; // 0: none
    int socket;
};

// Forks the nursery. child_main runs in every child; its return value is the child's exit status.
MUST_CHECK int nursery_create(struct nursery *nursery,
                              int (*child_main)(const struct nursery_child *child),
                              const void *context, struct err *err);

// Enters the sandbox. ERR_SANDBOX says what is missing; the nursery is then of no further use.
MUST_CHECK int nursery_enter(struct nursery *nursery, const struct sandbox *sandbox,
                             struct err *err);

// Clones a child. The descriptors stay the caller's. *ret_pid is a child of the caller; whoever
// calls reaps it.
MUST_CHECK int nursery_spawn(struct nursery *nursery, const void *spec, size_t spec_len,
                             const int *fd, size_t fd_count, pid_t *ret_pid, struct err *err);

// Ends the nursery (its children live on) and reaps it.
void nursery_release(struct nursery *nursery);

#endif
