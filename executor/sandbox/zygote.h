// The zygote: the process from which sandboxed children are cloned. kcast-exec creates it and asks
// it for children, which compile and run candidates. It must not know what the children do:
// child_main is the caller's.
//
// Theory of operation. kcast-exec forks the zygote before it reads its plan, so that neither the
// zygote nor any child ever holds the plan's secret, the seed. The first request says whether there
// is a sandbox; if so, the zygote enters namespaces and root (executor/sandbox/root.h) once. Every
// further request clones one child, in a pid namespace of its own, with CLONE_PARENT: the child's
// parent is kcast-exec, which waits for it, reads its processor clock and kills it. Requests and
// replies are single datagrams on a socketpair, with descriptors attached. The zygote runs trusted
// code only. It ends when its socket is closed.
//
// A child that clones children of its own, so that kcast-exec is their parent too, gets a group:
//
//   kcast-exec ─┬─ zygote
//               ├─ first process of the group's pid namespace: idle, and the namespace ends with it
//               ├─ the child
//               └─ what the child clones with CLONE_PARENT
//
// The kernel does not let the first process of a pid namespace clone siblings, hence the idle one.
#ifndef EXECUTOR_SANDBOX_ZYGOTE_H
#define EXECUTOR_SANDBOX_ZYGOTE_H

#include "common/err.h"
#include "executor/sandbox/fd_message.h"
#include "executor/sandbox/sandbox.h"
#include <stddef.h>
#include <sys/types.h>

#define ZYGOTE_SPEC_MAX 8192         // bytes
#define ZYGOTE_FD_MAX FD_MESSAGE_MAX // descriptors

// What a child is given. All pointers are valid while child_main runs.
struct zygote_child {
    const struct sandbox *sandbox;
    const void *spec; // the bytes given to zygote_spawn
    size_t spec_len;
    const int *fd; // the descriptors given to zygote_spawn
    size_t fd_count;
    int alive_fd;        // for sandbox_drop
    const void *context; // given to zygote_create; a copy made by fork, not shared
};

struct zygote {
    pid_t pid;  // 0: there is none
    int socket; // -1: there is none
};

// Forks the zygote. child_main runs in every child; its return value is the child's exit status.
MUST_CHECK int zygote_create(struct zygote *zygote,
                             int (*child_main)(const struct zygote_child *child),
                             const void *context, struct err *err);

// Enters the sandbox. ERR_SANDBOX says what is missing; the zygote can then only be released.
MUST_CHECK int zygote_enter(struct zygote *zygote, const struct sandbox *sandbox, struct err *err);

// Clones a child. The caller keeps its descriptors and reaps the child *ret_pid. ERR_LIMIT when the
// spec or the list of descriptors is too long.
MUST_CHECK int zygote_spawn(struct zygote *zygote, const void *spec, size_t spec_len, const int *fd,
                            size_t fd_count, pid_t *ret_pid, struct err *err);

// Clones a child that may clone more beside itself with SANDBOX_FORK_FLAGS. All of them, and the
// idle process, are children of the caller and in the process group *ret_group, which the caller
// ends with process_end_group. A failure leaves nothing behind.
MUST_CHECK int zygote_spawn_group(struct zygote *zygote, const void *spec, size_t spec_len,
                                  const int *fd, size_t fd_count, pid_t *ret_group, pid_t *ret_pid,
                                  struct err *err);

// Ends the zygote and reaps it. Children live on, except those in pid namespaces of groups: they
// are killed, and are still the caller's to reap.
void zygote_release(struct zygote *zygote);

#endif
