// One measurement on a GPU: from a plan to a verdict. The only thing in cuda/ that knows the order of
// things; see docs/measuring.md.
#ifndef CUDA_MEASURE_H
#define CUDA_MEASURE_H

#include "cuda/gpu.h"
#include "cuda/oracle.h"
#include "proto/all.h"

// On success *report (uninitialised before) owns its parts; report->retire is set when the context can no
// longer be used. Errors are failures of kernelcast, of the machine or of the problem, never of the
// candidate: that is a verdict. After a hang the process can only _exit.
MUST_CHECK int measure_cuda(const struct measure_plan *plan, struct gpu *gpu,
                            struct oracle *oracle, struct measure_report *report, struct err *err);

#endif
