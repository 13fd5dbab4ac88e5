// Measuring C candidates on one core of this machine.
#ifndef EXECUTOR_CPU_MEASURE_H
#define EXECUTOR_CPU_MEASURE_H

#include "executor/measure.h"

// The report's clock field and the method's version, part of what makes two results comparable.
#define MEASURE_CLOCK "runner cpu time"

// The machine is a struct judge (executor/cpu/harness.h), zero but for its zygote, which was created before
// the plan was read and has not been entered yet.
extern const struct measure_ops measure_cpu;

#endif
