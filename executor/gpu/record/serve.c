// Design note. The interpreter takes seconds to start, so it is started before anybody asks for it,
// in a sandbox. A plan that wants none, or finds it ended, starts it anew. That it cannot be
// started is the answer to a plan, not the end of this process: a host without PyTorch has one.
#include "executor/gpu/record/serve.h"
#include "common/strbuf.h"
#include "executor/frame.h"
#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/record/record.h"
#include <stdlib.h>
#include <unistd.h>

#define PLAN_MAX ((size_t)160 << 20) // bytes: source, problem and a known object

struct server {
    const char *python;
    struct recorder recorder;
    char *toolchain; // description that goes into every outcome
};

// Begins to start the interpreter when there is none, as after a candidate that never ended.
static void begin(struct server *server, bool sandbox_off)
{
    struct err told_by_the_next_plan = ERR_INIT;

    (void)!recorder_begin(&server->recorder, server->python, sandbox_off, &told_by_the_next_plan);
}

static int answer(void *owner, const struct bytes *packed_plan, struct bytes *ret, bool *ret_last,
                  struct err *err)
{
    struct server *server = owner;
    struct compile_outcome outcome;
    struct compile_plan plan;
    int rc = message_read(&compile_plan_message, &plan, packed_plan->data, packed_plan->len, err);

    *ret_last = false;
    if (rc != 0) {
        return rc;
    }
    struct strbuf packed;
    strbuf_init(&packed, (size_t)64 << 20);
    rc = record_cuda(&plan, &server->recorder, &outcome, err);
    if (rc != 0) {
        goto out;
    }
    outcome.compiled->toolchain = xstrdup(server->toolchain);
    rc = message_pack(&compile_outcome_message, &outcome, &packed, err);
    message_clear(&compile_outcome_message, &outcome);
    if (rc != 0) {
        goto out;
    }
    *ret = strbuf_detach_bytes(&packed);
    begin(server, plan.sandbox_off);
out:
    strbuf_release(&packed);
    message_clear(&compile_plan_message, &plan);
    return rc;
}

int serve_cuda_record(const char *python, struct err *err)
{
    struct server server = {.python = python, .recorder = RECORDER_INIT};
    int rc = nvrtc_toolchain(&server.toolchain, err);

    if (rc == 0) {
        begin(&server, false);
        rc = frame_serve(STDIN_FILENO, STDOUT_FILENO, PLAN_MAX, answer, &server, err);
    }
    recorder_stop(&server.recorder);
    free(server.toolchain);
    return rc;
}
