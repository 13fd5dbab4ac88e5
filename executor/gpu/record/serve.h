// The mode `kcast-exec cuda-record`: one process that records the candidates of many plans, so that
// PyTorch is imported once. Called by executor/main.c.
#ifndef EXECUTOR_GPU_RECORD_SERVE_H
#define EXECUTOR_GPU_RECORD_SERVE_H

#include "common/err.h"

// Serves frames (executor/frame.h) from stdin to stdout until stdin ends. Each frame holds a
// compile_plan and is answered with a compile_outcome. The first frame sent is empty. python is the
// interpreter, which is being started by then: the first plan waits for it. Returns 0 at the end of
// stdin, or the error that ended the serving.
MUST_CHECK int serve_cuda_record(const char *python, struct err *err);

#endif
