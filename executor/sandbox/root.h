// The namespaces and the root directory of a sandbox. The zygote (executor/sandbox/zygote.h) enters
// them once; its parent writes the id maps.
//
// root_enter puts the process into new user, mount, network, ipc, uts and cgroup namespaces. Each
// child gets a pid namespace of its own later. The id maps of the user namespace are written by the
// parent, which may hold privileges that the entering process has just lost: map() asks it to.
// Where no user namespace can be made but the process holds CAP_SYS_ADMIN (root in a container
// without /proc), the user namespace is left out.
#ifndef EXECUTOR_SANDBOX_ROOT_H
#define EXECUTOR_SANDBOX_ROOT_H

#include "common/err.h"
#include "executor/sandbox/sandbox.h"
#include <sys/types.h>

struct root_mapper {
    // Asks the parent to write the id maps of process pid, which is numbered as /proc shows it.
    int (*map)(void *context, pid_t pid, struct err *err);
    void *context;
};

// ERR_SANDBOX with a sentence that says what is missing. After a failure the process must end. Sets
// sandbox->user_namespace.
MUST_CHECK int root_enter(struct sandbox *sandbox, const struct root_mapper *mapper,
                          struct err *err);

// Called in the parent. Maps SANDBOX_ID inside to SANDBOX_ID outside where that is allowed, else to
// the parent's own user.
MUST_CHECK int root_write_maps(pid_t pid, struct err *err);

#endif
