// What GPUs this machine has, and what each can do at most.
#ifndef EXECUTOR_GPU_PROBE_H
#define EXECUTOR_GPU_PROBE_H

#include "common/err.h"
#include "proto/messages.h"

// *report (uninitialised before) owns its parts. No driver or no GPU is no error: report->reason says why.
MUST_CHECK int probe_cuda(struct cuda_probe_outcome *outcome, struct err *err);

// Whether the GPU with this uuid still works: a context, and the health kernel several times. An error
// says what does not.
MUST_CHECK int probe_health(const char *uuid, struct err *err);

#endif
