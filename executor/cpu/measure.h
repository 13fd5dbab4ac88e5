// Measuring candidates in C on one core: puts the harness behind struct measure_ops.
// executor/main.c hands it to measure_run. It must not know the order of the steps.
#ifndef EXECUTOR_CPU_MEASURE_H
#define EXECUTOR_CPU_MEASURE_H

#include "executor/measure.h"

// The clock that the outcome names. Results are comparable only if they name the same clock.
#define MEASURE_CLOCK "runner cpu time"

// The machine is a struct harness (executor/cpu/harness.h), all zero but for its zygote. The zygote
// was created before the plan was read and has not been entered.
extern const struct measure_ops measure_cpu;

#endif
