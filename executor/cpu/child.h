// What a process cloned from the zygote becomes: one dispatcher over the roles of executor/cpu/control.h.
#ifndef EXECUTOR_CPU_CHILD_H
#define EXECUTOR_CPU_CHILD_H

#include "common/err.h"
#include "executor/cpu/runner.h"
#include "executor/sandbox/zygote.h"

// Built by the trusted program before the zygote is forked; children find it in their memory.
struct child_context {
    struct runner_filters runner;
    struct sandbox_filter jail;
};

enum child_need { CHILD_NEEDS_JAIL = 1, CHILD_NEEDS_RUNNER = 2 };

MUST_CHECK int child_context_init(struct child_context *context, unsigned needs, struct err *err);
void child_context_release(struct child_context *context);

// For zygote_create, with a struct child_context as context.
int child_main(const struct zygote_child *child);

#endif
