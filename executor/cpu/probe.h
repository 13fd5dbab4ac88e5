// The pre-flight: does the real recipe work on this machine, does it refuse what it must, and what
// can the cores do.
#ifndef EXECUTOR_CPU_PROBE_H
#define EXECUTOR_CPU_PROBE_H

#include "common/err.h"
#include "executor/cpu/child.h"
#include "proto/messages.h"

// Compiles and runs a small kernel through jail and runner, tries from inside each what must fail,
// measures the peaks of one core. A sandbox that does not work is no error: report.sandbox is false
// and report.reason says what is missing.
MUST_CHECK int probe_run(const struct child_context *context, struct probe_outcome *outcome,
                         struct err *err);

#endif
