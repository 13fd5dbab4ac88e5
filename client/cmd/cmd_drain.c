// kcast drain, kcast undrain: let devices take no more jobs, and let them take jobs again.
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/session.h"

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

// Sends each daemon the request with its own devices. When an argument is wrong, nothing is sent to
// any daemon.
static int drain_all(const struct daemons *daemons, const struct drain *request, struct err *err)
{
    struct daemon_arguments *words;
    int rc =
        daemons_group_arguments(&words, daemons, request->devices, request->devices_count, err);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < daemons->count && rc == 0; i++) {
        struct drain own = *request;
        own.devices = words[i].word;
        own.devices_count = words[i].count;
        struct empty reply;
        if (own.devices_count > 0) {
            rc = remote_call_sync(daemons->link[i].remote, OP_DRAIN, &drain_message, &own,
                                  &empty_message, &reply, DRAIN_MS, err);
        }
    }
    daemon_arguments_free(words, daemons->count);
    return rc;
}

static int drain(struct session *session, const struct drain *request, struct err *err)
{
    struct daemons daemons;
    int rc = daemons_connect(&daemons, session, err);
    if (rc == 0) {
        rc = drain_all(&daemons, request, err);
        daemons_release(&daemons);
    }
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

static int run_drain(struct session *session, const void *own, char **argument, size_t count,
                     struct err *err)
{
    const struct drain_options *options = own;
    struct drain request = {.devices = argument, .devices_count = count, .reason = options->reason};
    return drain(session, &request, err);
}

static int run_undrain(struct session *session, const void *own, char **argument, size_t count,
                       struct err *err)
{
    (void)own;
    struct drain request = {.devices = argument, .devices_count = count, .undrain = true};
    return drain(session, &request, err);
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
