// Finding out which GPUs this machine has and what each can do at most. The modes `kcast-exec
// cuda-probe` and `cuda-health` call it. Knows no plans and no candidates.
#ifndef EXECUTOR_GPU_PROBE_H
#define EXECUTOR_GPU_PROBE_H

#include "common/err.h"
#include "proto/messages.h"

// Describes every GPU. *outcome may be uninitialised; afterwards the caller owns its parts. A
// machine without driver or GPU is no error: outcome->reason says what is missing. A GPU that fails
// the examination has the reason in its own entry.
MUST_CHECK int probe_cuda(struct cuda_probe_outcome *outcome, struct err *err);

// Checks that the GPU with this uuid still works: makes a context and runs the health kernel
// several times. The error says what does not work.
MUST_CHECK int probe_health(const char *uuid, struct err *err);

#endif
