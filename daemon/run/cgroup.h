// Control groups (version 2) of the daemon's children, where the system has delegated a group to
// the daemon. Below the group that the daemon was started in:
//
//   kcastd     the daemon itself: a group with controllers for others may hold no process
//   exec-N     one kcast-exec and all that comes of it, with its limits
//
// Knows nothing of what the children do. Nothing here waits: files of the kernel are written and
// directories removed, and a group that still has processes is removed by a later sweep.
#ifndef DAEMON_RUN_CGROUP_H
#define DAEMON_RUN_CGROUP_H

#include "common/err.h"
#include <stdbool.h>
#include <stdint.h>

struct cgroups; // all groups of one daemon
struct cgroup;  // of one child

// 0 leaves a limit alone.
struct cgroup_limits {
    uint64_t memory; // bytes of all its processes together, shared memory and files in memory too
    uint64_t processes; // and threads
};

// The directory of the group that this process is in, malloc'd. proc_dir is "/proc/self", or what a
// test has put in its place. ERR_NOT_FOUND says why there is none to be seen.
MUST_CHECK int cgroup_find_own(char **ret_dir, const char *proc_dir, struct err *err);

// Takes over dir: moves this process into its kcastd, hands memory and pids on as far as they are
// to be had, kills and removes what a killed daemon has left there. On failure everything is as
// before and the sentence says why: the group is not delegated (ERR_DENIED: it is not ours to
// write, or carries no mark; the mark is what systemd's Delegate= sets, attribute user.delegate or
// trusted.delegate of "1"), another daemon has it (ERR_BUSY), or the kernel refused (ERR_SYSTEM).
MUST_CHECK int cgroups_create(struct cgroups **ret, const char *dir, struct err *err);
// Every cgroup has been ended. What could not be removed yet is left to the next daemon. This
// process stays in its kcastd. NULL is fine.
void cgroups_free(struct cgroups *cgroups);
const char *cgroups_dir(const struct cgroups *cgroups);
// The controllers that limit children: "memory pids", or "none": then groups only end what is in
// them.
const char *cgroups_controllers(const struct cgroups *cgroups);
// Removes ended groups that have become empty. Called now and then; NULL is fine.
void cgroups_sweep(struct cgroups *cgroups);

// A new, empty group. On failure there is none.
MUST_CHECK int cgroup_create(struct cgroup **ret, struct cgroups *cgroups,
                             const struct cgroup_limits *limits, struct err *err);
// For kcast-exec's --cgroup; valid until the group is ended.
const char *cgroup_dir(const struct cgroup *cgroup);
// Whether the kernel has killed something in it because it was over its limit of memory.
bool cgroup_out_of_memory(const struct cgroup *cgroup);
// SIGKILL to all that is in it, as far as the kernel can do that (Linux 5.14).
void cgroup_kill(const struct cgroup *cgroup);
// The same, and removes it, now or by a later sweep. Frees cgroup_taken; NULL is fine.
void cgroup_end(struct cgroup *cgroup_taken);

// Writes the limits to the files of a group, those that exist: a controller that is not to be had
// limits nothing. For cgroup_create, and for tests of it.
MUST_CHECK int cgroup_limit(const char *dir, const struct cgroup_limits *limits, struct err *err);

#endif
