// kcast drain, kcast undrain: devices that take no more jobs, and take them again.
#include "client/command.h"
#include "client/session.h"
#include <stdio.h>

#define DRAIN_MS 10000
#define DEVICES_MAX 256

struct drain_options {
    char *reason;
};

static const struct option_row rows[] = {
    {"reason", 0, OPTION_TEXT, offsetof(struct drain_options, reason), "TEXT", NULL, 0, 0, NULL,
     "what `kcast status` says of them"},
    {0},
};

static int call(struct session *session, const struct drain *request, struct err *err)
{
    struct remote *pool;
    struct empty reply;
    int code = session_pool(session, &pool, err);

    if (code == 0) {
        code = remote_call_sync(pool, OP_DRAIN, &drain_message, request, &empty_message, &reply,
                                DRAIN_MS, err);
    }
    return code == 0 ? EXIT_OK : err_exit(code);
}

static int run_drain(struct session *session, const void *own, char **argument, size_t count,
                     struct err *err)
{
    const struct drain_options *options = own;
    struct drain request = {.devices = argument, .devices_count = count, .reason = options->reason};

    return call(session, &request, err);
}

static int run_undrain(struct session *session, const void *own, char **argument, size_t count,
                       struct err *err)
{
    struct drain request = {.devices = argument, .devices_count = count, .undrain = true};

    (void)own;
    return call(session, &request, err);
}

const struct command cmd_drain = {
    .name = "drain",
    .arguments = "DEVICE…",
    .help = "Let devices finish what they run and take no more jobs",
    .option = rows,
    .options_size = sizeof(struct drain_options),
    .argument_min = 1,
    .argument_max = DEVICES_MAX,
    .run = run_drain,
};

const struct command cmd_undrain = {
    .name = "undrain",
    .arguments = "DEVICE…",
    .help = "Let drained devices take jobs again; GPUs are probed first",
    .argument_min = 1,
    .argument_max = DEVICES_MAX,
    .run = run_undrain,
};
