// kcast drain, kcast undrain: devices that take no more jobs, and take them again.
#include "client/command.h"
#include "client/daemons.h"
#include "client/session.h"
#include "common/mem.h"
#include <stdlib.h>

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

// The devices of one daemon: all of them or none.
static int call_one(const struct daemon_link *link, const struct drain *all,
                    const struct daemon_link *const *at, char **device, struct err *err)
{
    struct drain request = {.undrain = all->undrain, .reason = all->reason};
    struct empty reply;
    int code = 0;

    request.devices = xcalloc(all->devices_count + 1, sizeof(*request.devices));
    for (size_t i = 0; i < all->devices_count; i++) {
        if (at[i] == link) {
            request.devices[request.devices_count++] = device[i];
        }
    }
    if (request.devices_count > 0) {
        code = remote_call_sync(link->remote, OP_DRAIN, &drain_message, &request, &empty_message,
                                &reply, DRAIN_MS, err);
    }
    free(request.devices);
    return code;
}

// Nothing is drained when an argument is wrong.
static int call_all(const struct daemons *daemons, const struct drain *request, struct err *err)
{
    size_t count = request->devices_count;
    const struct daemon_link **at = xcalloc(count + 1, sizeof(*at));
    char **device = xcalloc(count + 1, sizeof(*device));
    const char *name;
    int code = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        code = daemons_find(daemons, request->devices[i], &at[i], &name, err);
        device[i] = code == 0 ? (char *)(uintptr_t)name : NULL; // only packed
    }
    for (size_t i = 0; i < daemons->count && code == 0; i++) {
        code = call_one(&daemons->link[i], request, at, device, err);
    }
    free(at);
    free(device);
    return code;
}

static int call(struct session *session, const struct drain *request, struct err *err)
{
    struct daemons daemons;
    int code = daemons_connect(&daemons, session, err);

    if (code == 0) {
        code = call_all(&daemons, request, err);
        daemons_release(&daemons);
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
    .help = "Let devices finish what they run and take no more jobs; with several daemons "
            "HOST:PORT/DEVICE",
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
