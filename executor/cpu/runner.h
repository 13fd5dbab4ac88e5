// The child that runs a candidate's code: it maps the tensors, confines itself, loads one object,
// and then calls the entry whenever the control page says so. executor/cpu/child.c starts it. Once
// the object is loaded the candidate controls this process, so the harness
// (executor/cpu/runner_process.h) trusts nothing that comes from it.
#ifndef EXECUTOR_CPU_RUNNER_H
#define EXECUTOR_CPU_RUNNER_H

#include "executor/cpu/control.h"
#include "executor/sandbox/zygote.h"

// The filters that runners load: while the object is loaded, and from then on. The parent builds
// them before it forks the zygote, and children inherit them.
struct runner_filters {
    struct sandbox_filter load;
    struct sandbox_filter run;
};

// Returns only on failure, with the reason in the control page. The value is the exit status.
int runner_main(const struct zygote_child *child, const struct runner_filters *filters);

#endif
