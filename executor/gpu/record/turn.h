// Turns of making contexts on a GPU. The driver makes them one after the other, whoever asks; while
// many ask at once, every call of a process that measures waits as often as there are others. So
// the processes that record candidates take turns.
#ifndef EXECUTOR_GPU_RECORD_TURN_H
#define EXECUTOR_GPU_RECORD_TURN_H

#include "common/err.h"

// Opens a file that is locked (flock, exclusively) by whoever makes a context on the device (uuid
// or number, NULL: the first): the same one in every process with the same folder for temporary
// files. Where there can be no such file it is one of this process alone, so that nobody waits for
// anybody. Returns the descriptor, which is the caller's, or an error.
MUST_CHECK int turn_open(const char *device, struct err *err);

#endif
