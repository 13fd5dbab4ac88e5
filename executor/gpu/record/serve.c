// Design note. The interpreter takes seconds to start, so it is started before anybody asks for it,
// in a sandbox. A plan that wants none, or finds it ended, starts it anew. That it cannot be
// started is the answer to a plan, not the end of this process: a host without PyTorch has one.
#include "executor/gpu/record/serve.h"
#include "executor/gpu/compile/answer.h"
#include "executor/gpu/compile/nvrtc.h"
#include "executor/gpu/record/record.h"
#include <stdlib.h>

struct server {
    const char *python;
    struct recorder recorder;
    struct sandbox_filter filter; // of the jail that disassembles
    struct zygote zygote;
    struct cuda_jail jail;
    bool has_jail;   // it has been set up
    char *toolchain; // description that goes into every outcome
};

// Begins to start the interpreter when there is none, as after a candidate that never ended.
static void begin(struct server *server, bool sandbox_off)
{
    struct err told_by_the_next_plan = ERR_INIT;

    (void)!recorder_begin(&server->recorder, server->python, sandbox_off, &told_by_the_next_plan);
}

// The jail that disassembles, NULL where there is no toolkit for it. It starts nothing before it is
// used, and then as the first plan says, with or without a sandbox.
static struct cuda_jail *jail_of(struct server *server, bool sandbox_off)
{
    struct toolkit toolkit;
    struct err none = ERR_INIT;

    if (!server->has_jail && server->zygote.socket >= 0 && toolkit_find(&toolkit, &none) == 0) {
        cuda_jail_init(&server->jail, &server->zygote, &toolkit, sandbox_off);
        server->has_jail = true;
    }
    return server->has_jail && server->jail.sandbox_off == sandbox_off ? &server->jail : NULL;
}

static int make(void *owner, const struct compile_plan *plan, struct compile_outcome *ret,
                struct err *err)
{
    struct server *server = owner;
    int rc = record_cuda(plan, &server->recorder, jail_of(server, plan->sandbox_off), ret, err);

    if (rc == 0) {
        begin(server, plan->sandbox_off);
    }
    return rc;
}

int serve_cuda_record(const char *python, struct err *err)
{
    struct server server = {.python = python, .recorder = RECORDER_INIT, .zygote = {.socket = -1}};
    int rc = nvrtc_toolchain(&server.toolchain, err);

    if (rc == 0) {
        rc = sandbox_filter_build(&server.filter, STAGE_COMPILE, err);
    }
    if (rc == 0) {
        rc = zygote_create(&server.zygote, cuda_jail_child, &server.filter, err);
    }
    if (rc == 0) {
        begin(&server, false);
        rc = compile_serve(server.toolchain, make, &server, err);
    }
    if (server.has_jail) {
        cuda_jail_release(&server.jail);
    }
    zygote_release(&server.zygote);
    sandbox_filter_release(&server.filter);
    recorder_stop(&server.recorder);
    free(server.toolchain);
    return rc;
}
