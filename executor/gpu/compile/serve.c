// Design note. The sandbox is tried first. Where the machine has none, the compiler starts without
// it, and only a plan that asks for no sandbox can be compiled. A plan that asks for the other kind
// than the last one did has the compile server started anew.
#include "executor/gpu/compile/serve.h"
#include "executor/frame.h"
#include "executor/gpu/compile/compile.h"
#include "executor/gpu/compile/nvrtc.h"
#include <stdlib.h>
#include <unistd.h>

#define PLAN_MAX ((size_t)160 << 20) // bytes: source, problem and a known object

struct server {
    struct sandbox_filter filter;
    struct zygote zygote;
    struct cuda_jail jail;
    char *toolchain; // description that goes into every outcome
};

static int server_start(struct server *server, bool sandbox_off, struct err *err)
{
    struct toolkit toolkit;
    int rc = toolkit_find(&toolkit, err);

    if (rc != 0) {
        return rc;
    }
    rc = zygote_create(&server->zygote, cuda_jail_child, &server->filter, err);
    cuda_jail_init(&server->jail, &server->zygote, &toolkit, sandbox_off);
    return rc == 0 ? cuda_jail_start(&server->jail, err) : rc;
}

static void server_stop(struct server *server)
{
    cuda_jail_release(&server->jail);
    zygote_release(&server->zygote);
    server->zygote = (struct zygote){.socket = -1};
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
    if (plan.sandbox_off != server->jail.sandbox_off) {
        server_stop(server);
        rc = server_start(server, plan.sandbox_off, err);
    }
    if (rc != 0) {
        goto out;
    }
    rc = compile_cuda(&plan, &server->jail, &outcome, err);
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
out:
    strbuf_release(&packed);
    message_clear(&compile_plan_message, &plan);
    return rc;
}

int serve_cuda_compile(struct err *err)
{
    struct server server = {.zygote = {.socket = -1}};
    struct err why = ERR_INIT;
    int rc = sandbox_filter_build(&server.filter, STAGE_COMPILE, err);

    if (rc != 0) {
        goto out;
    }
    rc = nvrtc_toolchain(&server.toolchain, err);
    if (rc != 0) {
        goto out;
    }
    if (server_start(&server, false, &why) != 0) {
        server_stop(&server);
        rc = server_start(&server, true, &why) == 0 ? 0 : err_set(err, why.code, "%s", why.text);
    }
    if (rc != 0) {
        goto out;
    }
    rc = frame_serve(STDIN_FILENO, STDOUT_FILENO, PLAN_MAX, answer, &server, err);
out:
    server_stop(&server);
    sandbox_filter_release(&server.filter);
    free(server.toolchain);
    return rc;
}
