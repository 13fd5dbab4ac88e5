#include "executor/gpu/compile/answer.h"
#include "common/strbuf.h"
#include "executor/frame.h"
#include "executor/give_way.h"
#include <unistd.h>

#define PLAN_MAX ((size_t)160 << 20) // bytes: source, problem and a known object
#define OUTCOME_MAX ((size_t)64 << 20)

struct serving {
    const char *toolchain;
    int (*make)(void *owner, const struct compile_plan *plan, struct compile_outcome *ret,
                struct err *err);
    void *owner;
};

static int answer(void *owner, const struct bytes *packed_plan, struct bytes *ret, bool *ret_last,
                  struct err *err)
{
    const struct serving *serving = owner;
    struct compile_outcome outcome;
    struct compile_plan plan;
    int rc = message_read(&compile_plan_message, &plan, packed_plan->data, packed_plan->len, err);

    *ret_last = false;
    give_way();
    if (rc != 0) {
        return rc;
    }
    struct strbuf packed;
    strbuf_init(&packed, OUTCOME_MAX);
    rc = serving->make(serving->owner, &plan, &outcome, err);
    if (rc != 0) {
        goto out;
    }
    outcome.compiled->toolchain = xstrdup(serving->toolchain);
    rc = message_pack(&compile_outcome_message, &outcome, &packed, err);
    message_clear(&compile_outcome_message, &outcome);
    if (rc == 0) {
        *ret = strbuf_detach_bytes(&packed);
    }
out:
    strbuf_release(&packed);
    message_clear(&compile_plan_message, &plan);
    return rc;
}

int compile_serve(const char *toolchain,
                  int (*make)(void *owner, const struct compile_plan *plan,
                              struct compile_outcome *ret, struct err *err),
                  void *owner, struct err *err)
{
    struct serving serving = {.toolchain = toolchain, .make = make, .owner = owner};

    return frame_serve(STDIN_FILENO, STDOUT_FILENO, PLAN_MAX, answer, &serving, err);
}
