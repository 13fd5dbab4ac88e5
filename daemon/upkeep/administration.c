// Design note. A drain or a quarantine is carried out at once and answered when the ledger has it.
// A probe is called an inspection here, to tell it from the health probes of watch.c:
//
//   asked for ─▶ waits until nothing runs on the device ─▶ kcast-exec tries the device ─▶ answered
//
// A device has at most one inspection at a time. The exchange is parked meanwhile. When the caller
// disconnects, the inspection goes on without it, because the device takes no jobs until it ends.
//
// A core is tried by `kcast-exec probe`: the sandbox must work, and the machine must still be of
// the class that its results are compared within. A GPU is tried by `kcast-exec cuda-health`.
#include "daemon/upkeep/administration.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/printable.h"
#include "daemon/devices/device.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/run/executors.h"
#include "daemon/run/measure.h"
#include "daemon/run/outcome.h"
#include "daemon/store/ledger.h"
#include <stdlib.h>
#include <string.h>

#define OUTCOME_MAX ((size_t)1 << 20) // bytes that kcast-exec may reply
#define ANSWER_BEFORE_MS 500          // time between the reply and the caller's deadline

// The probe of one device.
struct inspection {
    struct administration *administration;
    size_t device;             // index of the device
    bool wanted;               // asked for and not ended
    struct exchange *exchange; // parked; NULL when the caller has disconnected
    struct executor *executor; // NULL while it has not begun
};

struct administration {
    const struct daemon_parts *parts;
    struct inspection *inspection; // one for each device
    size_t pending;                // exchanges that wait for the ledger
    bool stopped;
};

// The reply to a drain or quarantine, while the ledger writes it.
struct deferred_reply {
    struct administration *administration;
    struct exchange *exchange;
    size_t left;      // operations that the ledger has not answered
    struct err error; // the first failure
};

// The ledger knows a GPU by its UUID, because its number may change.
static const char *ledger_name(const struct device *device)
{
    return device_is_gpu(device) ? device->uuid : device->name;
}

// --- drain, quarantine

static void on_kept(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct deferred_reply *deferred = owner;

    (void)answer;
    (void)count;
    if (error && deferred->error.code == ERR_NONE) {
        deferred->error = *error;
        (void)err_wrap(&deferred->error, "it is done, but the ledger cannot keep it for a restart");
    }
    if (--deferred->left > 0) {
        return;
    }
    struct empty reply = {.unused = false};
    if (deferred->error.code != ERR_NONE) {
        exchange_fail(deferred->exchange, &deferred->error);
    } else {
        exchange_reply(deferred->exchange, &empty_message, &reply);
    }
    deferred->administration->pending--;
    free(deferred);
}

// Returns whether all devices exist and the reason, which may be NULL, can be shown. Otherwise the
// exchange has been answered.
static bool find_all(const struct administration *administration, struct exchange *exchange,
                     char **names, size_t count, const char *reason)
{
    struct err err = ERR_INIT;

    if (count == 0) {
        (void)err_set(&err, ERR_USAGE, "no device is named");
    } else if (reason) {
        (void)!printable_check("the reason", reason, &err);
    }
    for (size_t i = 0; i < count; i++) {
        if (!devices_find(administration->parts->devices, names[i])) {
            (void)err_set(&err, ERR_NOT_FOUND, "no device %s here; `kcast status` lists them",
                          names[i]);
        }
    }
    if (err.code != ERR_NONE) {
        exchange_fail(exchange, &err);
    }
    return err.code == ERR_NONE;
}

static struct deferred_reply *defer_reply(struct administration *administration,
                                          struct exchange *exchange, size_t count)
{
    struct deferred_reply *deferred = xcalloc(1, sizeof(*deferred));

    deferred->administration = administration;
    deferred->exchange = exchange;
    deferred->left = count;
    deferred->error = (struct err)ERR_INIT;
    administration->pending++;
    return deferred;
}

// Returns whether none of the devices is kept out of service by a quarantine alone, which an
// undrain does not end. Otherwise the exchange has been answered.
static bool can_undrain(const struct administration *administration, struct exchange *exchange,
                        const struct drain *drain)
{
    struct err err = ERR_INIT;

    for (size_t i = 0; i < drain->devices_count; i++) {
        const struct device *device =
            devices_find(administration->parts->devices, drain->devices[i]);

        if (device->state == DEVICE_QUARANTINED && !device->drain[0]) {
            (void)err_set(&err, ERR_INVALID,
                          "%s is not drained but quarantined (%.300s); `kcast probe %s` ends that "
                          "when it passes",
                          drain->devices[i], device_why(device), drain->devices[i]);
        }
    }
    if (err.code != ERR_NONE) {
        exchange_fail(exchange, &err);
    }
    return err.code == ERR_NONE;
}

void administration_drain(struct administration *administration, struct exchange *exchange,
                          const struct drain *drain)
{
    if (!find_all(administration, exchange, drain->devices, drain->devices_count, drain->reason) ||
        (drain->undrain && !can_undrain(administration, exchange, drain))) {
        return;
    }
    struct deferred_reply *deferred = defer_reply(administration, exchange, drain->devices_count);
    for (size_t i = 0; i < drain->devices_count; i++) {
        struct device *device = devices_find(administration->parts->devices, drain->devices[i]);

        if (drain->undrain) {
            device_undrain(device);
            ledger_drop_order(administration->parts->ledger, ledger_name(device), LEDGER_DRAIN,
                              on_kept, deferred);
        } else {
            device_drain(device, drain->reason);
            ledger_order(administration->parts->ledger, ledger_name(device), LEDGER_DRAIN,
                         drain->reason, on_kept, deferred);
        }
    }
    scheduler_wake(administration->parts->scheduler);
}

void administration_quarantine(struct administration *administration, struct exchange *exchange,
                               const struct quarantine *quarantine)
{
    if (!find_all(administration, exchange, quarantine->devices, quarantine->devices_count,
                  quarantine->reason)) {
        return;
    }
    struct deferred_reply *deferred =
        defer_reply(administration, exchange, quarantine->devices_count);
    for (size_t i = 0; i < quarantine->devices_count; i++) {
        struct device *device =
            devices_find(administration->parts->devices, quarantine->devices[i]);

        device_quarantine_by_operator(device, quarantine->reason);
        ledger_order(administration->parts->ledger, ledger_name(device), LEDGER_QUARANTINE,
                     quarantine->reason, on_kept, deferred);
    }
}

// --- probe

static void fill_facts(struct probed *probed, const struct device *device,
                       struct probe_outcome *outcome)
{
    if (device_is_gpu(device)) {
        probed->facts = device_readings(device, clock_now_ns(&clock_system), &probed->facts_count);
    } else {
        probed->facts = outcome->facts;
        probed->facts_count = outcome->facts_count;
        outcome->facts = NULL;
        outcome->facts_count = 0;
    }
}

// Returns an error when the outcome of a core's probe speaks against the core.
static int check_core(const struct administration *administration, const struct device *device,
                      const struct probe_outcome *outcome, struct err *err)
{
    if (!outcome->sandbox && !administration->parts->limits.sandbox_off) {
        return err_set(err, ERR_SANDBOX, "the sandbox cannot be set up any more: %s",
                       outcome->reason ? outcome->reason : "kcast-exec probe gives no reason");
    }
    if (strcmp(outcome->device_class, device->device_class->name) != 0) {
        return err_set(err, ERR_SYSTEM, "it is of class %s now and was of %s; restart kcastd",
                       outcome->device_class, device->device_class->name);
    }
    return 0;
}

// Logs the end of an inspection and answers its exchange. `failure` is NULL when it was passed.
static void end_inspection(struct inspection *inspection, const char *failure, double seconds,
                           struct probe_outcome *outcome)
{
    const struct device *device =
        &inspection->administration->parts->devices->device[inspection->device];
    struct exchange *exchange = inspection->exchange;

    inspection->exchange = NULL;
    inspection->wanted = false;
    log_event(LOG_NOTICE, "device-probed device=%s passed=%s%s%s%s", device->name,
              failure ? "no" : "yes", failure ? " reason=\"" : "", failure ? failure : "",
              failure ? "\"" : "");
    if (!exchange) {
        return;
    }
    struct probed probed;
    message_init(&probed_message, &probed);
    probed.device = xstrdup(device->name);
    probed.passed = !failure;
    probed.found =
        xstrndup(failure                 ? failure
                 : device_is_gpu(device) ? "the health kernel gave the right answer twenty"
                                           " times"
                                         : "the sandbox works, and the machine is what"
                                           " it was",
                 1024);
    probed.seconds = seconds;
    probed.state = xstrdup(device_state_name(device->state));
    fill_facts(&probed, device, outcome);
    exchange_reply(exchange, &probed_message, &probed);
    message_clear(&probed_message, &probed);
}

// Ends an inspection that could not be carried out.
static void abandon(struct inspection *inspection, const struct err *why)
{
    struct exchange *exchange = inspection->exchange;

    inspection->exchange = NULL;
    inspection->wanted = false;
    device_inspection_put_off(
        &inspection->administration->parts->devices->device[inspection->device]);
    if (exchange) {
        exchange_fail(exchange, why);
    }
    scheduler_wake(inspection->administration->parts->scheduler);
}

static void on_probed(void *owner, struct executor_end *end)
{
    struct inspection *inspection = owner;
    const struct daemon_parts *parts = inspection->administration->parts;
    struct device *device = &parts->devices->device[inspection->device];
    bool passed = end->ok;

    inspection->executor = NULL;
    struct err err = ERR_INIT;
    if (end->stopped) {
        (void)err_set(&err, ERR_BUSY, "kcastd is stopping");
        abandon(inspection, &err);
        return;
    }
    struct probe_outcome outcome;
    message_init(&probe_outcome_message, &outcome);
    if (!end->ok) {
        (void)err_set(&err, ERR_SYSTEM, "%s", end->reason);
    } else if (!device_is_gpu(device)) {
        passed = outcome_read_probe(&outcome, &end->outcome, &err) == 0 &&
                 check_core(inspection->administration, device, &outcome, &err) == 0;
    }
    if (passed && device->operator_quarantine[0]) {
        ledger_drop_order(parts->ledger, ledger_name(device), LEDGER_QUARANTINE, NULL, NULL);
    }
    device_inspection_ends(device, passed ? NULL : err.text, clock_now_ns(&clock_system));
    end_inspection(inspection, passed ? NULL : err.text, end->seconds, &outcome);
    message_clear(&probe_outcome_message, &outcome);
    scheduler_wake(parts->scheduler);
}

static void start_executor(struct inspection *inspection)
{
    const struct daemon_parts *parts = inspection->administration->parts;
    struct device *device = &parts->devices->device[inspection->device];
    struct executor_config executor = {
        .mode = device_is_gpu(device) ? "cuda-health" : "probe",
        .argument = device_is_gpu(device) ? device->uuid : NULL,
        .outcome_max = OUTCOME_MAX,
        .deadline_ms = ADMINISTRATION_PROBE_MS,
        .grace_ms = parts->limits.grace_ms,
        .limits = {.memory = MEASURE_GROUP_MEMORY, .processes = MEASURE_GROUP_PROCESSES},
        .on_end = on_probed,
        .owner = inspection,
    };
    struct bytes nothing = {0};
    struct err err = ERR_INIT;

    if (executor_start(&inspection->executor, parts->executors, &executor, &nothing, &err) != 0) {
        inspection->executor = NULL;
        abandon(inspection, &err);
    }
}

// Begins an inspection whose device is idle; ends one whose caller cannot wait any longer.
static void advance(struct inspection *inspection)
{
    const struct device *device =
        &inspection->administration->parts->devices->device[inspection->device];

    if (!inspection->wanted || inspection->executor) {
        return;
    }
    struct err err = ERR_INIT;
    if (device->job == 0 && !device->probing) {
        start_executor(inspection);
    } else if (!inspection->exchange ||
               exchange_remaining_ms(inspection->exchange) < ANSWER_BEFORE_MS + 1000) {
        (void)err_set(&err, ERR_BUSY,
                      "%s is still busy with job %llu; drain it, or try again later", device->name,
                      (unsigned long long)device->job);
        abandon(inspection, &err);
    }
}

// The service has dropped the parked exchange.
static void on_drop(void *waiter)
{
    ((struct inspection *)waiter)->exchange = NULL;
}

void administration_probe(struct administration *administration, struct exchange *exchange,
                          const struct probe_request *request)
{
    struct device *device = devices_find(administration->parts->devices, request->device);

    if (!find_all(administration, exchange, (char **)(uintptr_t)&request->device, 1, NULL)) {
        return;
    }
    struct inspection *inspection =
        &administration->inspection[device - administration->parts->devices->device];
    struct err err = ERR_INIT;
    if (device->loss[0]) {
        (void)err_set(&err, ERR_SYSTEM, "%s cannot be probed: %s", device->name, device->loss);
    } else if (inspection->wanted) {
        (void)err_set(&err, ERR_BUSY, "%s is being probed already", device->name);
    } else if (!exchange_park(exchange, 0, on_drop, inspection)) {
        (void)err_set(&err, ERR_BUSY, "too many callers wait already; try again later");
    }
    if (err.code != ERR_NONE) {
        exchange_fail(exchange, &err);
        return;
    }
    inspection->wanted = true;
    inspection->exchange = exchange;
    device_inspection_begins(device);
    advance(inspection);
}

void administration_drain_all(struct administration *administration)
{
    for (size_t i = 0; i < administration->parts->devices->count; i++) {
        device_drain(&administration->parts->devices->device[i],
                     "kcastd ends when its devices are idle");
    }
}

void administration_tick(struct administration *administration)
{
    for (size_t i = 0; !administration->stopped && i < administration->parts->devices->count; i++) {
        advance(&administration->inspection[i]);
    }
}

// --- create and stop

// Applies a drain or quarantine that the ledger has.
static void apply(void *owner, const char *name, uint64_t kind, const char *reason)
{
    struct devices *devices = ((struct administration *)owner)->parts->devices;
    struct device *device = NULL;

    for (size_t i = 0; i < devices->count; i++) {
        if (strcmp(ledger_name(&devices->device[i]), name) == 0) {
            device = &devices->device[i];
        }
    }
    if (!device) {
        log_event(LOG_NOTICE, "order-kept device=%s reason=\"it is not here at the moment\"", name);
    } else if (kind == LEDGER_DRAIN) {
        device_drain(device, reason);
    } else if (kind == LEDGER_QUARANTINE) {
        device_quarantine_by_operator(device, reason);
    }
}

int administration_create(struct administration **ret, const struct daemon_parts *parts,
                          struct err *err)
{
    struct administration *administration = xcalloc(1, sizeof(*administration));

    administration->parts = parts;
    administration->inspection =
        xcalloc(parts->devices->count + 1, sizeof(*administration->inspection));
    for (size_t i = 0; i < parts->devices->count; i++) {
        administration->inspection[i] =
            (struct inspection){.administration = administration, .device = i};
    }
    int rc = ledger_load_orders(parts->ledger, apply, administration, err);
    if (rc != 0) {
        administration_free(administration);
        return rc;
    }
    *ret = administration;
    return 0;
}

void administration_stop(struct administration *administration)
{
    if (!administration || administration->stopped) {
        return;
    }
    administration->stopped = true;
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_BUSY, "kcastd is stopping");
    for (size_t i = 0; i < administration->parts->devices->count; i++) {
        struct inspection *inspection = &administration->inspection[i];

        if (inspection->executor) {
            executor_stop(inspection->executor); // on_probed answers
        } else if (inspection->wanted) {
            abandon(inspection, &err);
        }
    }
}

size_t administration_pending(const struct administration *administration)
{
    return administration ? administration->pending : 0;
}

void administration_free(struct administration *administration)
{
    if (administration) {
        free(administration->inspection);
        free(administration);
    }
}
