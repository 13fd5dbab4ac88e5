// The two processes of a runner. The clean parent maps the tensors, confines itself, loads one
// object, and then forks a child whenever the harness asks it to. A child calls the entry
// whenever the control page says so. executor/cpu/child.c starts the clean parent.
//
// The clean parent never runs the candidate's code, so that every child begins with the same
// memory, and what one of them has written anywhere is gone with it. A child is controlled by the
// candidate from its first launch on, so the harness (executor/cpu/runner_process.h) trusts nothing
// that comes from it.
#ifndef EXECUTOR_CPU_RUNNER_H
#define EXECUTOR_CPU_RUNNER_H

#include "executor/cpu/control.h"
#include "executor/sandbox/zygote.h"

// The filters that runners load: the clean parent before it loads the object, and children beside
// it before they say that they are ready. The parent builds them before it forks the zygote, and
// children inherit them.
struct runner_filters {
    struct sandbox_filter load;
    struct sandbox_filter run;
};

// Returns only on failure, after it has reported why. The value is the exit status.
int runner_main(const struct zygote_child *child, const struct runner_filters *filters);

#endif
