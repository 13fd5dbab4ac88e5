// Waiting for child processes. Called by whoever has started one. It must not know what the child
// does.
#ifndef EXECUTOR_SANDBOX_PROCESS_H
#define EXECUTOR_SANDBOX_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

// Waits at most this many seconds for a child to end and reaps it. Returns false, and leaves
// *ret_status alone, when the child still runs. *ret_status is a wait status.
bool process_wait(pid_t pid, double seconds, int *ret_status);

// Reaps a child that has ended or is about to end. ret_status may be NULL.
void process_reap(pid_t pid, int *ret_status);

// Kills every process in the group and reaps those that are children of the caller. The first
// process of a pid namespace ends only when all others in it have been reaped, so that they are
// reaped in whatever order they end.
void process_end_group(pid_t group);

// Returns the seconds of processor time of all children that the caller has reaped, and of theirs.
double process_children_seconds(void);

#endif
