// Whose process is it?
#ifndef DAEMON_KIN_H
#define DAEMON_KIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Whether process numbers that the driver reports mean anything here: not inside a container with
// process numbers of its own.
bool kin_knows_pids(void);

// Whether pid is alive and neither `ancestor` nor below it. False when it has ended.
bool kin_is_stranger(pid_t pid, pid_t ancestor);

#endif
