// Ending with the process that started this one.
#ifndef COMMON_PARENT_H
#define COMMON_PARENT_H

#include "common/err.h"

// The variable by which a parent tells its number to a child that is to end with it.
#define PARENT_VARIABLE "KCAST_PARENT"

// Lets the kernel send SIGTERM to this process when its parent ends. ERR_STOPPED when it has ended
// already: a child that starts slowly may see only the process that has adopted it, so that it
// needs $KCAST_PARENT to know; without that, process 1 counts as one that has adopted it.
// ERR_SYSTEM when the kernel refuses.
MUST_CHECK int parent_follow(struct err *err);

#endif
