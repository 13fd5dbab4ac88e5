// The control group that the daemon has made for this kcast-exec and its descendants.
// executor/main.c enters it before anything else. It must not know what limits the group has.
#ifndef EXECUTOR_SANDBOX_CGROUP_H
#define EXECUTOR_SANDBOX_CGROUP_H

#include "common/err.h"

// Moves this process into the group with directory dir. Descendants made from now on start there.
// On failure the process stays where it is: ERR_INVALID when dir is missing or is no group of
// version 2, ERR_SANDBOX when the group does not accept it.
MUST_CHECK int cgroup_enter(const char *dir, struct err *err);

#endif
