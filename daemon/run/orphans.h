// Processes that their executor left behind. This process is made their reaper, so that the kernel
// hands them to it, whatever session or group they have put themselves into.
#ifndef DAEMON_RUN_ORPHANS_H
#define DAEMON_RUN_ORPHANS_H

#include "common/err.h"
#include <stdbool.h>
#include <sys/types.h>

MUST_CHECK int orphans_adopt(struct err *err);
// Kills and reaps every child of this process that is_known does not know. Does not wait: what is
// not gone yet is reaped by a later sweep. Call it from the main thread.
void orphans_sweep(bool (*is_known)(void *owner, pid_t pid), void *owner);

#endif
