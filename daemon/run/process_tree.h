// Whose process is it?
#ifndef DAEMON_RUN_PROCESS_TREE_H
#define DAEMON_RUN_PROCESS_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Whether process numbers that the driver reports mean anything here: not inside a container with
// process numbers of its own.
bool process_tree_knows_pids(void);

// Whether pid is alive and neither `ancestor` nor below it. False when it has ended.
bool process_tree_is_foreign(pid_t pid, pid_t ancestor);

#endif
