// What a process cloned from the zygote becomes: child_main calls the function of its role
// (executor/cpu/control.h). executor/main.c and the tests hand it to the zygote. It must not know
// who asks for children.
#ifndef EXECUTOR_CPU_CHILD_H
#define EXECUTOR_CPU_CHILD_H

#include "common/err.h"
#include "executor/cpu/runner.h"
#include "executor/sandbox/zygote.h"

// The filters that children load. The trusted program builds them before it forks the zygote, so
// that children find them in their memory.
struct child_context {
    struct runner_filters runner;
    struct sandbox_filter jail;
};

// Bits: which filters to build.
enum child_need { CHILD_NEEDS_JAIL = 1, CHILD_NEEDS_RUNNER = 2 };

// On failure nothing has to be released.
MUST_CHECK int child_context_init(struct child_context *context, unsigned needs, struct err *err);
void child_context_release(struct child_context *context);

// For zygote_create, whose context is then a struct child_context. Returns the exit status.
int child_main(const struct zygote_child *child);

#endif
