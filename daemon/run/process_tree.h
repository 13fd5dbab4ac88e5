// Asks the kernel (/proc) whether a process belongs to this daemon. Called by the watch over GPUs,
// which gets the numbers of the processes that use them from the driver.
#ifndef DAEMON_RUN_PROCESS_TREE_H
#define DAEMON_RUN_PROCESS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Whether the process numbers that the driver reports are the ones that /proc shows here. They are
// not inside a container that numbers its processes by itself.
bool process_tree_knows_pids(void);

// Whether pid is alive and is neither `ancestor` nor one of its descendants.
bool process_tree_is_foreign(pid_t pid, pid_t ancestor);

#endif
