#include "executor/cpu/child.h"
#include "executor/cpu/confinement_check.h"
#include "executor/cpu/jail.h"
#include <string.h>

int child_context_init(struct child_context *context, unsigned needs, struct err *err)
{
    *context = (struct child_context){0};
    int rc = 0;
    if (needs & CHILD_NEEDS_JAIL) {
        rc = sandbox_filter_build(&context->jail, STAGE_COMPILE, err);
    }
    if (rc == 0 && needs & CHILD_NEEDS_RUNNER) {
        rc = sandbox_filter_build(&context->runner.load, STAGE_LOAD, err);
    }
    if (rc == 0 && needs & CHILD_NEEDS_RUNNER) {
        rc = sandbox_filter_build(&context->runner.run, STAGE_RUN, err);
    }
    if (rc != 0) {
        child_context_release(context);
    }
    return rc;
}

void child_context_release(struct child_context *context)
{
    sandbox_filter_release(&context->jail);
    sandbox_filter_release(&context->runner.load);
    sandbox_filter_release(&context->runner.run);
}

int child_main(const struct zygote_child *child)
{
    const struct child_context *context = child->context;
    enum child_role role;

    if (child->spec_len < sizeof(role)) {
        return 1;
    }
    memcpy(&role, child->spec, sizeof(role));
    switch (role) {
    case CHILD_RUNNER:
        return runner_main(child, &context->runner);
    case CHILD_JAIL:
        return jail_main(child, &context->jail);
    case CHILD_CHECK_JAIL:
        return check_jail_main(child, &context->jail);
    case CHILD_CHECK_RUNNER:
        return check_runner_main(child, &context->runner);
    }
    return 1;
}
