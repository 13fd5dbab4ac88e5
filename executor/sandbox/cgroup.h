// The control group that the daemon has made for this kcast-exec and all that comes of it.
#ifndef EXECUTOR_SANDBOX_CGROUP_H
#define EXECUTOR_SANDBOX_CGROUP_H

#include "common/err.h"

// Moves this process into the group with directory dir; descendants made from now on are born
// there. On failure it stays where it is: ERR_INVALID when dir is missing or no group of version 2,
// ERR_SANDBOX when the group does not let it in.
MUST_CHECK int cgroup_enter(const char *dir, struct err *err);

#endif
