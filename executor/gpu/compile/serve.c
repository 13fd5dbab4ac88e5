// Design note. The sandbox is tried first. Where the machine has none, the compiler starts without
// it, and only a plan that asks for no sandbox can be compiled. A plan that asks for the other kind
// than the last one did has the compile server started anew.
#include "executor/gpu/compile/serve.h"
#include "executor/gpu/compile/answer.h"
#include "executor/gpu/compile/compile.h"
#include "executor/gpu/compile/nvrtc.h"
#include <stdlib.h>

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

static int make(void *owner, const struct compile_plan *plan, struct compile_outcome *ret,
                struct err *err)
{
    struct server *server = owner;
    int rc = 0;

    if (plan->sandbox_off != server->jail.sandbox_off) {
        server_stop(server);
        rc = server_start(server, plan->sandbox_off, err);
    }
    return rc == 0 ? compile_cuda(plan, &server->jail, ret, err) : rc;
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
    rc = compile_serve(server.toolchain, make, &server, err);
out:
    server_stop(&server);
    sandbox_filter_release(&server.filter);
    free(server.toolchain);
    return rc;
}
