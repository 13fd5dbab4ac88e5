// The mode `kcast-exec cuda-compile`: one process that compiles many plans, so that the compiler is
// loaded once. Called by executor/main.c.
#ifndef EXECUTOR_GPU_COMPILE_SERVE_H
#define EXECUTOR_GPU_COMPILE_SERVE_H

#include "common/err.h"

// Serves frames (executor/frame.h) from stdin to stdout until stdin ends. Each frame holds a
// compile_plan and is answered with a compile_outcome. The first frame sent is empty and means that
// the compiler is ready. Returns 0 at the end of stdin, or the error that ended the serving.
MUST_CHECK int serve_cuda_compile(struct err *err);

#endif
