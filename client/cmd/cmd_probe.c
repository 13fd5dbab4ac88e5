// kcast quarantine, kcast probe: take devices that may be broken out of service, and try whether
// they work.
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/pool/job_progress.h"
#include "client/session.h"
#include "client/show.h"
#include "common/clock.h"
#include "common/printable.h"
#include <math.h>
#include <stdio.h>

#define QUARANTINE_MS 10000
#define DEVICES_MAX 256

struct quarantine_options {
    char *reason;
};

struct probe_options {
    uint64_t wait_ns;
};

static const struct option_row quarantine_rows[] = {
    {"reason", 0, OPTION_TEXT, offsetof(struct quarantine_options, reason), "TEXT", NULL, 0, 0,
     NULL, "what `kcast status` says of them"},
    {0},
};

static const struct option_row probe_rows[] = {
    {"wait", 0, OPTION_DURATION, offsetof(struct probe_options, wait_ns), "TIME", "5m", 1e9, 0,
     NULL, "how long to wait for the end of what it runs, and for the probe"},
    {0},
};

// Sends each daemon the request with its own devices. When an argument is wrong, nothing is sent to
// any daemon.
static int quarantine_all(const struct daemons *daemons, const struct quarantine *request,
                          struct err *err)
{
    struct daemon_arguments *words;
    int rc =
        daemons_group_arguments(&words, daemons, request->devices, request->devices_count, err);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < daemons->count && rc == 0; i++) {
        struct quarantine own = *request;
        own.devices = words[i].word;
        own.devices_count = words[i].count;
        struct empty reply;
        if (own.devices_count > 0) {
            rc = remote_call_sync(daemons->link[i].remote, OP_QUARANTINE, &quarantine_message, &own,
                                  &empty_message, &reply, QUARANTINE_MS, err);
        }
    }
    daemon_arguments_free(words, daemons->count);
    return rc;
}

static int run_quarantine(struct session *session, const void *own, char **argument, size_t count,
                          struct err *err)
{
    const struct quarantine_options *options = own;
    struct quarantine request = {
        .devices = argument, .devices_count = count, .reason = options->reason};
    struct daemons daemons;
    int rc = daemons_connect(&daemons, session, err);
    if (rc == 0) {
        rc = quarantine_all(&daemons, &request, err);
        daemons_release(&daemons);
    }
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

static void print_probed(const struct probed *probed, bool json)
{
    if (json) {
        show_print(json_pack("{s:s, s:b, s:o, s:o, s:o, s:o}", "device", probed->device, "passed",
                             (int)probed->passed, "found", show_text(probed->found), "state",
                             show_text(probed->state), "seconds", show_number(probed->seconds),
                             "facts", show_facts(probed->facts, probed->facts_count)));
        return;
    }
    char took[32];
    show_seconds(probed->seconds, took, sizeof(took));
    printable_printf(stdout, "%s %s: %s (in %s); it is %s now\n", probed->device,
                     probed->passed ? "works" : "does not work", probed->found ? probed->found : "",
                     took, probed->state ? probed->state : "?");
    for (size_t i = 0; i < probed->facts_count; i++) {
        double value = probed->facts[i].value;
        bool whole = value == trunc(value) && fabs(value) < 0x1p53; // bytes and counts in full
        printable_printf(stdout, whole ? "  %-28s %.0f\n" : "  %-28s %.6g\n", probed->facts[i].name,
                         value);
    }
}

static int call_probe(struct session *session, const char *device, uint64_t wait_ms,
                      struct probed *ret, struct err *err)
{
    struct daemons daemons;
    int rc = daemons_connect(&daemons, session, err);
    if (rc != 0) {
        return rc;
    }
    const struct daemon_link *link;
    const char *name;
    rc = daemons_find(&daemons, device, &link, &name, err);
    if (rc == 0) {
        // The cast drops const; the request is only packed.
        struct probe_request request = {.device = (char *)(uintptr_t)name};
        struct job_progress *job_progress =
            job_progress_create(session, NULL, "probing", stderr, &clock_system);
        rc = remote_call_sync(link->remote, OP_PROBE, &probe_request_message, &request,
                              &probed_message, ret, wait_ms, err);
        job_progress_free(job_progress);
    }
    daemons_release(&daemons);
    return rc;
}

static int run_probe(struct session *session, const void *own, char **argument, size_t count,
                     struct err *err)
{
    (void)count;
    const struct probe_options *options = own;
    struct probed probed;
    int rc = call_probe(session, argument[0], options->wait_ns / NS_PER_MS, &probed, err);
    if (rc != 0) {
        return err_exit(rc);
    }
    print_probed(&probed, session_options(session)->json);
    if (!probed.passed) {
        rc = err_set(err, ERR_SYSTEM, "%s did not pass its probe", argument[0]);
    }
    message_clear(&probed_message, &probed);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_quarantine = {
    .name = "quarantine",
    .arguments = "DEVICE…",
    .help = "Let devices take no more jobs until they have passed a probe; with several daemons "
            "HOST:PORT/DEVICE",
    .option = quarantine_rows,
    .options_size = sizeof(struct quarantine_options),
    .argument_min = 1,
    .argument_max = DEVICES_MAX,
    .run = run_quarantine,
};

const struct command cmd_probe = {
    .name = "probe",
    .arguments = "DEVICE",
    .help =
        "Try a device now and say what was found; ends its quarantine when it works; with several "
        "daemons HOST:PORT/DEVICE",
    .option = probe_rows,
    .options_size = sizeof(struct probe_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = run_probe,
};
