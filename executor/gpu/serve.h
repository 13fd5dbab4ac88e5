// The mode `kcast-exec cuda-measure`: one process that measures many plans on one GPU, so that
// context, kernels and oracle are made once. Called by executor/main.c.
#ifndef EXECUTOR_GPU_SERVE_H
#define EXECUTOR_GPU_SERVE_H

#include "common/err.h"

// Serves frames (executor/frame.h) from stdin to stdout until stdin ends. Each frame holds a
// measure_plan and is answered with a measure_outcome. The first frame sent is empty and means that
// the context is there. Returns 0 at the end of stdin, or the error that ended the serving. Does
// not return after a kernel that never ends: the process ends after that outcome.
MUST_CHECK int serve_cuda(const char *uuid, struct err *err);

#endif
