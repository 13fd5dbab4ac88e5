// Design note. Types and numbers are those of NVML's public interface, which does not change
// between versions of the driver. A function that newer versions have renamed is tried under both
// names. A reading that a GPU cannot tell (not supported, no permission) is not valid. When the
// driver has been unloaded the library is initialised again, and each GPU is found again by its
// UUID.
#include "daemon/devices/nvml.h"
#include "common/library.h"
#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK 0
#define UNINITIALIZED 1
#define INSUFFICIENT_SIZE 7
#define DRIVER_NOT_LOADED 9
#define GPU_IS_LOST 15
#define RESET_REQUIRED 16
#define CLOCK_SM 1
#define CLOCK_MEM 2
#define THRESHOLD_SLOWDOWN 1
#define ECC_UNCORRECTED 1
#define ECC_VOLATILE 0
#define EVENT_XID 8ULL

typedef void *handle;

struct event {
    handle device;
    unsigned long long type, data;
    unsigned instance[2];
};

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance[2];
};

// X(field, required, symbol, parameters)
#define FUNCTIONS(X)                                                                               \
    X(init, true, "nvmlInit_v2", (void))                                                           \
    X(shut_down, true, "nvmlShutdown", (void))                                                     \
    X(by_uuid, true, "nvmlDeviceGetHandleByUUID", (const char *, handle *))                        \
    X(clock, false, "nvmlDeviceGetClockInfo", (handle, int, unsigned *))                           \
    X(temperature, false, "nvmlDeviceGetTemperature", (handle, int, unsigned *))                   \
    X(threshold, false, "nvmlDeviceGetTemperatureThreshold", (handle, int, unsigned *))            \
    X(power, false, "nvmlDeviceGetPowerUsage", (handle, unsigned *))                               \
    X(power_limit, false, "nvmlDeviceGetEnforcedPowerLimit", (handle, unsigned *))                 \
    X(reasons, false, "nvmlDeviceGetCurrentClocksEventReasons", (handle, unsigned long long *))    \
    X(old_reasons, false, "nvmlDeviceGetCurrentClocksThrottleReasons",                             \
      (handle, unsigned long long *))                                                              \
    X(ecc, false, "nvmlDeviceGetTotalEccErrors", (handle, int, int, unsigned long long *))         \
    X(remapped, false, "nvmlDeviceGetRemappedRows",                                                \
      (handle, unsigned *, unsigned *, unsigned *, unsigned *))                                    \
    X(processes, false, "nvmlDeviceGetComputeRunningProcesses_v3",                                 \
      (handle, unsigned *, struct process *))                                                      \
    X(event_set, false, "nvmlEventSetCreate", (handle *))                                          \
    X(event_set_free, false, "nvmlEventSetFree", (handle))                                         \
    X(event_register, false, "nvmlDeviceRegisterEvents", (handle, unsigned long long, handle))     \
    X(event_wait, false, "nvmlEventSetWait_v2", (handle, struct event *, unsigned))

struct nvml {
    void *library;
#define X(field, required, symbol, parameters) int(*field) parameters;
    FUNCTIONS(X)
#undef X
    const char *(*error_text)(int result);
    bool initialised;
    handle events;  // NULL: events are not available
    handle *device; // [count]
    char (*uuid)[64];
    bool *lost; // [count], at the last reading
    bool gone;  // the driver was not loaded at the last reading: initialise again
    size_t count;
};

const char *nvml_reading_name(enum nvml_reading reading)
{
    static const char *const name[] = {
#define X(id, text) [NVML_##id] = text,
        NVML_READINGS(X)
#undef X
    };

    return name[reading];
}

static int load(struct nvml *nvml, struct err *err)
{
    static const char *const names[] = {"libnvidia-ml.so.1", NULL};
    const struct library_symbol symbols[] = {
#define X(field, required, symbol, parameters) {symbol, &nvml->field, required},
        FUNCTIONS(X)
#undef X
            {"nvmlErrorString", &nvml->error_text, true},
    };

    return library_open(&nvml->library, names, symbols, ARRAY_LEN(symbols), err);
}

static int check(const struct nvml *nvml, int result, const char *what, struct err *err)
{
    return result == OK ? 0 : err_set(err, ERR_SYSTEM, "%s: %s", what, nvml->error_text(result));
}

static void register_one(const struct nvml *nvml, size_t i)
{
    if (nvml->events) {
        (void)nvml->event_register(nvml->device[i], EVENT_XID, nvml->events);
    }
}

// Events are optional: a GPU without them is read all the same.
static void make_events(struct nvml *nvml)
{
    if (!nvml->event_set || !nvml->event_set_free || !nvml->event_register || !nvml->event_wait ||
        nvml->event_set(&nvml->events) != OK) {
        nvml->events = NULL;
    }
}

int nvml_open(struct nvml **ret, const char *const *uuids, size_t count, struct err *err)
{
    struct nvml *nvml = xcalloc(1, sizeof(*nvml));
    int rc = load(nvml, err);

    if (rc == 0) {
        rc = check(nvml, nvml->init(), "nvmlInit", err);
        nvml->initialised = rc == 0;
    }
    nvml->device = xcalloc(count + 1, sizeof(*nvml->device));
    nvml->uuid = xcalloc(count + 1, sizeof(*nvml->uuid));
    nvml->lost = xcalloc(count + 1, sizeof(*nvml->lost));
    for (size_t i = 0; rc == 0 && i < count; i++) {
        (void)snprintf(nvml->uuid[i], sizeof(nvml->uuid[i]), "%s", uuids[i]);
        rc = check(nvml, nvml->by_uuid(uuids[i], &nvml->device[i]), uuids[i], err);
        nvml->count = i + 1;
    }
    if (rc != 0) {
        nvml_close(nvml);
        return rc;
    }
    make_events(nvml);
    for (size_t i = 0; i < count; i++) {
        register_one(nvml, i);
    }
    *ret = nvml;
    return 0;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml) {
        return;
    }
    if (nvml->events) {
        (void)nvml->event_set_free(nvml->events);
    }
    if (nvml->initialised) {
        (void)nvml->shut_down();
    }
    library_close(nvml->library);
    free(nvml->device);
    free(nvml->uuid);
    free(nvml->lost);
    free(nvml);
}

static bool says_gone(int result)
{
    return result == UNINITIALIZED || result == DRIVER_NOT_LOADED;
}

// Stores one reading, or that it could not be told.
static void take(struct nvml_state *state, enum nvml_reading reading, int result, double value)
{
    state->valid[reading] = result == OK;
    state->value[reading] = value;
    state->gone |= says_gone(result);
    state->lost |= result == GPU_IS_LOST || result == RESET_REQUIRED || state->gone;
}

static void read_processes(const struct nvml *nvml, handle device, struct nvml_state *state)
{
    struct process process[NVML_PROCESSES_MAX];
    unsigned count = NVML_PROCESSES_MAX;
    int result = nvml->processes(device, &count, process);

    if (result == OK) {
        state->process_count = count < NVML_PROCESSES_MAX ? count : NVML_PROCESSES_MAX;
        for (size_t i = 0; i < state->process_count; i++) {
            state->process[i] = process[i].pid;
        }
    }
    take(state, NVML_PROCESSES, result == INSUFFICIENT_SIZE ? OK : result, count);
}

static void read_one(const struct nvml *nvml, handle device, struct nvml_state *state)
{
    unsigned value = 0, unused[3];
    unsigned long long wide = 0;
    int (*reasons)(handle, unsigned long long *) =
        nvml->reasons ? nvml->reasons : nvml->old_reasons;

#define READ(have, id, call, result_value)                                                         \
    if (have) {                                                                                    \
        int result = (call);                                                                       \
        take(state, NVML_##id, result, (double)(result_value));                                    \
    }
    READ(nvml->clock, SM_CLOCK, nvml->clock(device, CLOCK_SM, &value), value)
    READ(nvml->clock, MEM_CLOCK, nvml->clock(device, CLOCK_MEM, &value), value)
    READ(nvml->temperature, TEMPERATURE, nvml->temperature(device, 0, &value), value)
    READ(nvml->threshold, SLOWDOWN, nvml->threshold(device, THRESHOLD_SLOWDOWN, &value), value)
    READ(nvml->power, POWER, nvml->power(device, &value), value / 1000.0)
    READ(nvml->power_limit, POWER_LIMIT, nvml->power_limit(device, &value), value / 1000.0)
    READ(reasons, THROTTLE, reasons(device, &wide), wide)
    READ(nvml->ecc, ECC, nvml->ecc(device, ECC_UNCORRECTED, ECC_VOLATILE, &wide), wide)
    READ(nvml->remapped, REMAP, nvml->remapped(device, &unused[0], &unused[1], &value, &unused[2]),
         value)
#undef READ
    if (nvml->processes) {
        read_processes(nvml, device, state);
    }
}

static void take_events(struct nvml *nvml, struct nvml_state *states)
{
    // The number is limited in case events come faster than they are taken.
    for (size_t n = 0; nvml->events && n < NVML_XIDS_MAX * nvml->count; n++) {
        struct event event = {.device = NULL};

        if (nvml->event_wait(nvml->events, &event, 0) != OK) {
            return;
        }
        for (size_t i = 0; i < nvml->count; i++) {
            struct nvml_state *state = &states[i];

            if (nvml->device[i] == event.device && event.type == EVENT_XID &&
                state->xid_count < NVML_XIDS_MAX) {
                state->xid[state->xid_count++] = event.data;
            }
        }
    }
}

// The driver was unloaded, and perhaps loaded again. Nothing of before is valid.
static void begin_anew(struct nvml *nvml)
{
    if (nvml->events) {
        (void)nvml->event_set_free(nvml->events);
        nvml->events = NULL;
    }
    if (nvml->initialised) {
        (void)nvml->shut_down();
    }
    nvml->initialised = nvml->init() == OK;
    nvml->gone = !nvml->initialised;
    if (nvml->initialised) {
        make_events(nvml); // each GPU is registered for events when it is found again
    }
}

static void read_gpu(struct nvml *nvml, size_t i, struct nvml_state *ret)
{
    // A GPU that was lost and comes back has another handle.
    int found = nvml->lost[i] && !nvml->gone ? nvml->by_uuid(nvml->uuid[i], &nvml->device[i]) : OK;

    if (nvml->gone || found != OK) {
        ret->lost = true;
        ret->gone = nvml->gone || says_gone(found);
        return;
    }
    if (nvml->lost[i]) {
        register_one(nvml, i);
    }
    read_one(nvml, nvml->device[i], ret);
}

void nvml_read(struct nvml *nvml, struct nvml_state *ret)
{
    memset(ret, 0, nvml->count * sizeof(*ret));
    if (nvml->gone) {
        begin_anew(nvml);
    }
    bool gone = false;
    for (size_t i = 0; i < nvml->count; i++) {
        read_gpu(nvml, i, &ret[i]);
        nvml->lost[i] = ret[i].lost;
        gone |= ret[i].gone;
    }
    nvml->gone |= gone;
    take_events(nvml, ret);
}
