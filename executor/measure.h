// One measurement: from a plan to a verdict. The only thing here that knows the order of things;
// see docs/measuring.md.
#ifndef EXECUTOR_MEASURE_H
#define EXECUTOR_MEASURE_H

#include "common/err.h"
#include "executor/sandbox/zygote.h"
#include "proto/messages.h"

// The report's clock field and the method's version, part of what makes two results comparable.
#define MEASURE_CLOCK "runner cpu time"

// zygote was created before the plan was read and not entered yet. On success *report
// (uninitialised before) owns its parts. Errors are failures of kernelcast, of the machine or of
// the problem, never of the candidate: that is a verdict.
MUST_CHECK int measure_run(const struct measure_plan *plan, struct zygote *zygote,
                           struct measure_outcome *outcome, struct err *err);

#endif
