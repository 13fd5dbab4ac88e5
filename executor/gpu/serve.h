// kcast-exec cuda-measure: one GPU, many plans.
#ifndef EXECUTOR_GPU_SERVE_H
#define EXECUTOR_GPU_SERVE_H

#include "common/err.h"

// Serves frames (executor/frame.h) from stdin to stdout until stdin ends: a measure_plan each, a
// measure_outcome back. An empty frame says that the context is there. Returns 0 at the end, or the error
// that ended it; does not return after a GPU that hangs: the process ends with EXIT_OK after its report.
MUST_CHECK int serve_cuda(const char *uuid, struct err *err);

#endif
