#include "executor/gpu/compile/answer.h"
#include "common/strbuf.h"

#define OUTCOME_MAX ((size_t)64 << 20)

int compile_answer(const struct bytes *packed_plan, const char *toolchain,
                   int (*make)(void *owner, const struct compile_plan *plan,
                               struct compile_outcome *ret, struct err *err),
                   void *owner, struct bytes *ret, struct err *err)
{
    struct compile_outcome outcome;
    struct compile_plan plan;
    int rc = message_read(&compile_plan_message, &plan, packed_plan->data, packed_plan->len, err);

    if (rc != 0) {
        return rc;
    }
    struct strbuf packed;
    strbuf_init(&packed, OUTCOME_MAX);
    rc = make(owner, &plan, &outcome, err);
    if (rc != 0) {
        goto out;
    }
    outcome.compiled->toolchain = xstrdup(toolchain);
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
