// One measurement: from a plan to a verdict. The only thing here that knows the order of things;
// see docs/measuring.md.
#ifndef EXEC_MEASURE_H
#define EXEC_MEASURE_H

#include "common/err.h"
#include "exec/nursery.h"
#include "proto/all.h"

// The report's clock field and the method's version, part of what makes two results comparable.
#define MEASURE_CLOCK "runner cpu time"

// nursery was created before the plan was read and not entered yet. On success *report
// (uninitialised before) owns its parts. Errors are failures of kernelcast, of the machine or of
// the problem, never of the candidate: that is a verdict.
MUST_CHECK int measure_run(const struct measure_plan *plan, struct nursery *nursery,
                           struct measure_report *report, struct err *err);

#endif
