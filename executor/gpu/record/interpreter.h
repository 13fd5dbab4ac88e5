// The interpreter of a recorder: which program it is, and which folders a sandbox must have for it.
// executor/gpu/record/recorder.c calls it before there is a sandbox.
#ifndef EXECUTOR_GPU_RECORD_INTERPRETER_H
#define EXECUTOR_GPU_RECORD_INTERPRETER_H

#include "executor/gpu/record/recorder.h"

// Asks the interpreter, outside of any sandbox, and adds its folders to sandbox->folder. `python`
// is what the administrator has named, and then the path of the program. ERR_UNSUPPORTED when there
// is none, or where the sandbox (unless sandbox->off) could not reach it.
MUST_CHECK int interpreter_find(char python[static RECORDER_PATH_MAX], struct sandbox *sandbox,
                                struct err *err);

#endif
