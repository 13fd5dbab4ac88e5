// Control groups (version 2) of the daemon's children, where the system has delegated a group to
// the daemon. Below the group that the daemon was started in there are:
//
//   kcastd     the daemon itself, because a group that hands controllers on may hold no process
//   exec-N     one kcast-exec and its descendants, with their limits
//
// Called by main.c, which takes the group over, and by child.c. Knows nothing of what the children
// do. Nothing here waits: files of the kernel are written and directories removed, and a group that
// still has processes is removed by a later sweep.
#ifndef DAEMON_RUN_CGROUP_H
#define DAEMON_RUN_CGROUP_H

#include "common/err.h"
#include <stdbool.h>
#include <stdint.h>

struct cgroups; // all groups of one daemon
struct cgroup;  // of one child

// 0 sets no limit.
struct cgroup_limits {
    uint64_t memory;    // bytes of all its processes, shared memory and files in memory included
    uint64_t processes; // processes and threads
};

// Sets *ret_dir, malloc'd, to the directory of the group that this process is in. proc_dir is
// "/proc/self", or a folder that a test puts in its place. ERR_NOT_FOUND says why no group can be
// seen.
MUST_CHECK int cgroup_find_own(char **ret_dir, const char *proc_dir, struct err *err);

// Takes over dir: moves this process into its kcastd, hands the controllers memory and pids on as
// far as they are available, and kills and removes the groups that a killed daemon has left. On
// failure everything is as before. ERR_DENIED when the group is not delegated: this process may not
// write it, or it lacks the mark, which is the extended attribute user.delegate or trusted.delegate
// with value "1" (systemd's Delegate= sets it). ERR_BUSY when another daemon has it, ERR_SYSTEM
// when the kernel refuses.
MUST_CHECK int cgroups_create(struct cgroups **ret, const char *dir, struct err *err);
// Every cgroup has been ended before. What cannot be removed yet is left to the next daemon. This
// process stays in its kcastd. NULL is fine.
void cgroups_free(struct cgroups *cgroups);
const char *cgroups_dir(const struct cgroups *cgroups);
// The controllers that limit children, "memory pids", or "none": groups then only serve to end
// their processes.
const char *cgroups_controllers(const struct cgroups *cgroups);
// Removes ended groups that have become empty. NULL is fine.
void cgroups_sweep(struct cgroups *cgroups);

// Makes a new, empty group. On failure (ERR_SYSTEM) there is none.
MUST_CHECK int cgroup_create(struct cgroup **ret, struct cgroups *cgroups,
                             const struct cgroup_limits *limits, struct err *err);
// Its directory, for kcast-exec's --cgroup; valid until the group is ended.
const char *cgroup_dir(const struct cgroup *cgroup);
// Whether the kernel has killed a process in it because the group exceeded its memory.
bool cgroup_out_of_memory(const struct cgroup *cgroup);
// Sends SIGKILL to every process in it, if the kernel can do that (Linux 5.14).
void cgroup_kill(const struct cgroup *cgroup);
// Does the same, and removes the group now or by a later sweep. Frees cgroup_taken; NULL is fine.
void cgroup_end(struct cgroup *cgroup_taken);

// Writes the limits to those files of a group that exist; a controller that is not available limits
// nothing. Called by cgroup_create, and by tests.
MUST_CHECK int cgroup_limit(const char *dir, const struct cgroup_limits *limits, struct err *err);

#endif
