// Recording a candidate that has host code of its own: from a compile_plan to an object, a packed
// cuda_object with a recording, and facts about it, as executor/gpu/compile/compile.h does for a
// sealed source. The mode cuda-record calls it. What the recorder says is checked here; whatever
// it is, the outcome is one.
#ifndef EXECUTOR_GPU_RECORD_RECORD_H
#define EXECUTOR_GPU_RECORD_RECORD_H

#include "executor/gpu/compile/jail.h"
#include "executor/gpu/record/recorder.h"
#include "proto/messages.h"

// Records the plan's source. The jail disassembles what was launched; NULL: nobody does. *ret may
// be uninitialised; on success the caller owns its parts. A source that cannot be recorded is a
// success with a verdict. An error is a failure of the machine: ERR_UNSUPPORTED when this host
// records nothing.
MUST_CHECK int record_cuda(const struct compile_plan *plan, struct recorder *recorder,
                           struct cuda_jail *jail, struct compile_outcome *ret, struct err *err);

#endif
