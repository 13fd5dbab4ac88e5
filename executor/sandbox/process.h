// Child processes: waiting for them, and ending them.
#ifndef EXECUTOR_SANDBOX_PROCESS_H
#define EXECUTOR_SANDBOX_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

// Waits at most so many seconds for a child to end and reaps it. Returns false when it is still
// there; *ret_status, the wait status, is then as it was.
bool process_wait(pid_t pid, double seconds, int *ret_status);

// Reaps a child that has ended or is about to. ret_status may be NULL.
void process_reap(pid_t pid, int *ret_status);

#endif
