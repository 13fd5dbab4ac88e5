// The self-test of a machine: whether candidates can be compiled and run here, whether the sandbox
// refuses what it must, and what a core can do. executor/main.c calls it. It must know no problem.
#ifndef EXECUTOR_CPU_PROBE_H
#define EXECUTOR_CPU_PROBE_H

#include "common/err.h"
#include "executor/cpu/child.h"
#include "proto/messages.h"

// Compiles and runs a small kernel through jail and runner, tries from inside each what must fail,
// and measures the peak rates of one core. A sandbox that does not work is no error:
// outcome.sandbox is then false and outcome.reason says what is missing. The caller owns the parts
// of *outcome.
MUST_CHECK int probe_run(const struct child_context *context, struct probe_outcome *outcome,
                         struct err *err);

#endif
