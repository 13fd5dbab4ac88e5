#include "exec/child.h"
#include "exec/check.h"
#include "exec/jail.h"
#include <string.h>

int child_context_init(struct child_context *context, unsigned needs, struct err *err)
{
    int status = 0;

    *context = (struct child_context){0};
    if (needs & CHILD_NEEDS_JAIL) {
        status = sandbox_filter_build(&context->jail, STAGE_COMPILE, err);
    }
    if (status == 0 && needs & CHILD_NEEDS_RUNNER) {
        status = sandbox_filter_build(&context->runner.load, STAGE_LOAD, err);
    }
    if (status == 0 && needs & CHILD_NEEDS_RUNNER) {
        status = sandbox_filter_build(&context->runner.run, STAGE_RUN, err);
    }
    if (status != 0) {
        child_context_release(context);
    }
    return status;
}

void child_context_release(struct child_context *context)
{
    sandbox_filter_release(&context->jail);
    sandbox_filter_release(&context->runner.load);
    sandbox_filter_release(&context->runner.run);
}

int child_main(const struct nursery_child *child)
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
