// The child that runs candidate code: maps what it is given, loads one object, confines itself, and
// then calls the entry whenever the control page says so. Everything after loading happens in the
// hands of the candidate; the harness (executor/cpu/runner_process.h) believes none of it.
#ifndef EXECUTOR_CPU_RUNNER_H
#define EXECUTOR_CPU_RUNNER_H

#include "executor/cpu/control.h"
#include "executor/sandbox/zygote.h"

// The filters that runners load, built by the parent before the zygote is forked. Never freed:
// children inherit them.
struct runner_filters {
    struct sandbox_filter load;
    struct sandbox_filter run;
};

// Returns only on failure, with the reason in the control page.
int runner_main(const struct zygote_child *child, const struct runner_filters *filters);

#endif
