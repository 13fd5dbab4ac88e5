// One measurement on a GPU: from a plan to a verdict. The only thing in cuda/ that knows the order of
// things; see docs/measuring.md.
#ifndef EXECUTOR_GPU_MEASURE_H
#define EXECUTOR_GPU_MEASURE_H

#include "executor/gpu/gpu.h"
#include "executor/gpu/oracle.h"
#include "proto/messages.h"

// On success *report (uninitialised before) owns its parts; report->retire is set when the context can no
// longer be used. Errors are failures of kernelcast, of the machine or of the problem, never of the
// candidate: that is a verdict. After a hang the process can only _exit.
MUST_CHECK int measure_cuda(const struct measure_plan *plan, struct gpu *gpu, struct oracle *oracle,
                            struct measure_outcome *outcome, struct err *err);

#endif
