// Processes that a child left behind when it ended. This process becomes their reaper, so that the
// kernel makes them its children, whatever session or group they have put themselves into. Called
// by child.c.
#ifndef DAEMON_RUN_ORPHANS_H
#define DAEMON_RUN_ORPHANS_H

#include "common/err.h"
#include <stdbool.h>
#include <sys/types.h>

// Makes this process the reaper of its orphaned descendants. ERR_SYSTEM when the kernel refuses.
MUST_CHECK int orphans_adopt(struct err *err);
// Kills and reaps every child of this process for which is_known() is false. Does not wait: a child
// that is not gone yet is reaped by a later sweep. To be called on the main thread.
void orphans_sweep(bool (*is_known)(void *owner, pid_t pid), void *owner);
// Kills and reaps every child of this process, and theirs as the kernel hands them over, until
// there is none or `ms` milliseconds have passed: what does not die in that time is left.
void orphans_end(unsigned ms);

#endif
