// The pre-flight: does the real recipe work on this machine, does it refuse what it must, and what
// can the cores do.
#ifndef EXEC_PROBE_H
#define EXEC_PROBE_H

#include "common/err.h"
#include "exec/child.h"
#include "proto/all.h"

// Compiles and runs a small kernel through jail and runner, tries from inside each what must fail,
// measures the peaks of one core. A sandbox that does not work is no error: report.sandbox is false
// and report.reason says what is missing.
MUST_CHECK int probe_run(const struct child_context *context, struct probe_report *report,
                         struct err *err);

#endif
