// Namespaces and the root directory of a sandbox. Runs in the zygote process (exec/zygote.h),
// once per kcast-exec.
//
// root_enter leaves the process in new user, mount, network, ipc, uts and cgroup namespaces; a new
// pid namespace comes with each child. The user namespace needs its id maps written by the parent,
// who may hold privileges that we no longer do: map() asks it to. Where a user namespace cannot be
// made but we hold CAP_SYS_ADMIN (root in a container without /proc), it is left out.
#ifndef EXECUTOR_SANDBOX_ROOT_H
#define EXECUTOR_SANDBOX_ROOT_H

#include "common/err.h"
#include "executor/sandbox/sandbox.h"
#include <sys/types.h>

struct root_mapper {
    // Asks the parent to write the id maps of process pid (a pid as /proc shows it).
    int (*map)(void *context, pid_t pid, struct err *err);
    void *context;
};

// ERR_SANDBOX with a sentence that says what is missing. On failure the process is of no further
// use.
MUST_CHECK int root_enter(struct sandbox *sandbox, const struct root_mapper *mapper,
                          struct err *err);

// In the parent: writes the maps: SANDBOX_ID inside to SANDBOX_ID outside when we may, else to our
// own user.
MUST_CHECK int root_write_maps(pid_t pid, struct err *err);

#endif
