// The functions of libnvidia-ml.so.1.
#include "tests/support/fake_nvml/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XID_EVENT 8ULL
#define DRIVER_VERSION "580.00"

static struct nvml_set set;

#define CALL(name, ...)                                                                            \
    __attribute__((visibility("default"))) int name(__VA_ARGS__);                                  \
    int name(__VA_ARGS__)

// ---- the library and its GPUs ----

CALL(nvmlInit_v2, void)
{
    int result = (int)fake_number("fail", fake_number("gone", 0) != 0 ? 9 : NVML_OK);

    if (result == NVML_OK && !fake_initialised) {
        fake_initialised = true;
        for (unsigned i = 0; i < GPU_MAX; i++) {
            fake_devices[i] = (struct nvml_device){.index = i};
        }
    }
    return result;
}

CALL(nvmlInitWithFlags, unsigned flags)
{
    (void)flags;
    return nvmlInit_v2();
}

CALL(nvmlShutdown, void)
{
    int result = fake_begin();

    fake_initialised = false;
    return result;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(int result);
const char *nvmlErrorString(int result)
{
    static const struct {
        int result;
        const char *text;
    } texts[] = {
        {NVML_OK, "Success"},
        {NVML_UNINITIALIZED, "Uninitialized"},
        {NVML_INVALID_ARGUMENT, "Invalid Argument"},
        {NVML_NOT_SUPPORTED, "Not Supported"},
        {NVML_NOT_FOUND, "Not Found"},
        {NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
        {9, "Driver Not Loaded"},
        {NVML_TIMEOUT, "Timeout"},
        {NVML_LOST, "GPU is lost"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].result == result) {
            return texts[i].text;
        }
    }
    return "Unknown Error";
}

CALL(nvmlSystemGetDriverVersion, char *ret, unsigned size)
{
    int result = fake_begin();

    return result != NVML_OK ? result : fake_give_text(DRIVER_VERSION, ret, size);
}

CALL(nvmlSystemGetNVMLVersion, char *ret, unsigned size)
{
    int result = fake_begin();

    return result != NVML_OK ? result : fake_give_text("13." DRIVER_VERSION, ret, size);
}

CALL(nvmlDeviceGetCount_v2, unsigned *ret)
{
    int result = fake_begin();

    if (result == NVML_OK) {
        *ret = fake_count();
    }
    return result;
}

CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvml_device *ret)
{
    int result = index < GPU_MAX ? fake_device(&fake_devices[index], NULL) : NVML_INVALID_ARGUMENT;

    if (result == NVML_OK) {
        *ret = &fake_devices[index];
    }
    return result;
}

static void uuid_of(unsigned index, char ret[static 41])
{
    snprintf(ret, 41, "GPU-fa4e0000-0000-4000-8000-%012x", index);
}

CALL(nvmlDeviceGetHandleByUUID, const char *uuid, nvml_device *ret)
{
    char own[41];
    int result = fake_begin();

    for (unsigned i = 0; result == NVML_OK && i < fake_count(); i++) {
        uuid_of(i, own);
        if (strcmp(own, uuid) == 0) {
            return nvmlDeviceGetHandleByIndex_v2(i, ret);
        }
    }
    return result != NVML_OK ? result : NVML_NOT_FOUND;
}

CALL(nvmlDeviceGetIndex, nvml_device device, unsigned *ret)
{
    int result = fake_device(device, NULL);

    if (result == NVML_OK) {
        *ret = device->index;
    }
    return result;
}

CALL(nvmlDeviceGetUUID, nvml_device device, char *ret, unsigned size)
{
    char own[41];
    int result = fake_device(device, NULL);

    if (result != NVML_OK) {
        return result;
    }
    uuid_of(device->index, own);
    return fake_give_text(own, ret, size);
}

CALL(nvmlDeviceGetName, nvml_device device, char *ret, unsigned size)
{
    int result = fake_device(device, NULL);

    return result != NVML_OK ? result : fake_give_text("NVIDIA H200", ret, size);
}

// ---- readings ----

static int give_clock(const struct nvml_device *device, int type, bool greatest, unsigned *ret)
{
    bool memory = type == 2;
    const char *reading = memory ? "mem_clock" : "sm_clock";
    unsigned most = memory ? 3201 : 1980;

    if (type < 0 || type > 3) {
        return NVML_INVALID_ARGUMENT;
    }
    if (!greatest) {
        return fake_give_unsigned(device, reading, most, ret);
    }
    int result;
    if ((result = fake_device(device, reading)) == NVML_OK) {
        *ret = most;
    }
    return result;
}

CALL(nvmlDeviceGetClockInfo, nvml_device device, int type, unsigned *ret)
{
    return give_clock(device, type, false, ret);
}

CALL(nvmlDeviceGetMaxClockInfo, nvml_device device, int type, unsigned *ret)
{
    return give_clock(device, type, true, ret);
}

CALL(nvmlDeviceGetTemperature, nvml_device device, int sensor, unsigned *ret)
{
    return sensor != 0 ? NVML_INVALID_ARGUMENT : fake_give_unsigned(device, "temperature", 35, ret);
}

CALL(nvmlDeviceGetTemperatureThreshold, nvml_device device, int type, unsigned *ret)
{
    return type != 1 ? NVML_NOT_SUPPORTED : fake_give_unsigned(device, "slowdown", 90, ret);
}

CALL(nvmlDeviceGetPowerUsage, nvml_device device, unsigned *ret)
{
    return fake_give_unsigned(device, "power", 80000, ret);
}

CALL(nvmlDeviceGetEnforcedPowerLimit, nvml_device device, unsigned *ret)
{
    return fake_give_unsigned(device, "power_limit", 700000, ret);
}

CALL(nvmlDeviceGetCurrentClocksEventReasons, nvml_device device, unsigned long long *ret)
{
    return fake_give(device, "throttle", 0, ret);
}

CALL(nvmlDeviceGetCurrentClocksThrottleReasons, nvml_device device, unsigned long long *ret)
{
    return fake_give(device, "throttle", 0, ret);
}

CALL(nvmlDeviceGetTotalEccErrors, nvml_device device, int kind, int counter,
     unsigned long long *ret)
{
    int result;

    if (kind < 0 || kind > 1 || counter < 0 || counter > 1) {
        return NVML_INVALID_ARGUMENT;
    }
    if (kind == 1) { // uncorrected errors
        return fake_give(device, "ecc", 0, ret);
    }
    if ((result = fake_device(device, "ecc")) == NVML_OK) {
        *ret = 0;
    }
    return result;
}

CALL(nvmlDeviceGetRemappedRows, nvml_device device, unsigned *corrected, unsigned *uncorrected,
     unsigned *pending, unsigned *failed)
{
    int result = fake_give_unsigned(device, "remap", 0, pending);

    if (result == NVML_OK) {
        *corrected = *failed = 0;
        *uncorrected = *pending;
    }
    return result;
}

CALL(nvmlDeviceGetUtilizationRates, nvml_device device, struct nvml_utilisation *ret)
{
    unsigned value;
    int result = fake_give_unsigned(device, "utilisation", 0, &value);

    if (result == NVML_OK) {
        *ret = (struct nvml_utilisation){.gpu = value, .memory = value / 2};
    }
    return result;
}

CALL(nvmlDeviceGetMemoryInfo, nvml_device device, struct nvml_memory *ret)
{
    int result = fake_device(device, "memory");

    if (result == NVML_OK) {
        *ret = (struct nvml_memory){.total = 8ULL << 30, .unused = 8ULL << 30};
    }
    return result;
}

CALL(nvmlDeviceGetPersistenceMode, nvml_device device, int *ret)
{
    unsigned value;
    int result = fake_give_unsigned(device, "persistence", 1, &value);

    if (result == NVML_OK) {
        *ret = (int)value;
    }
    return result;
}

// *count is how many fit, and becomes how many there are.
CALL(nvmlDeviceGetComputeRunningProcesses_v3, nvml_device device, unsigned *count,
     struct nvml_process *processes)
{
    unsigned room = *count, found = 0;
    char text[256], *next = text, *one;
    int result = fake_device(device, "process");

    if (result != NVML_OK) {
        return result;
    }
    if (!fake_text(device, "process", text)) {
        text[0] = '\0';
    }
    while ((one = strsep(&next, ","))) {
        char *bytes = strchr(one, ':');

        if (*one == '\0') {
            continue;
        }
        if (found < room && processes) {
            processes[found] = (struct nvml_process){
                .pid = (unsigned)strtoul(one, NULL, 10),
                .bytes = bytes ? strtoull(bytes + 1, NULL, 10) : 0,
                .gpu_instance = UINT32_MAX,
                .compute_instance = UINT32_MAX,
            };
        }
        found++;
    }
    *count = found;
    return found > room ? NVML_INSUFFICIENT_SIZE : NVML_OK;
}

// ---- events ----

CALL(nvmlEventSetCreate, nvml_set *ret)
{
    int result = fake_begin();

    if (result == NVML_OK) {
        *ret = &set;
    }
    return result;
}

CALL(nvmlEventSetFree, nvml_set which)
{
    (void)which;
    for (unsigned i = 0; i < GPU_MAX; i++) {
        fake_devices[i].registered = false;
    }
    return fake_begin();
}

CALL(nvmlDeviceGetSupportedEventTypes, nvml_device device, unsigned long long *ret)
{
    int result = fake_device(device, "xid");

    if (result == NVML_OK) {
        *ret = XID_EVENT;
    }
    return result;
}

CALL(nvmlDeviceRegisterEvents, nvml_device device, unsigned long long types, nvml_set which)
{
    int result = fake_device(device, "xid");

    if (result == NVML_OK && (which != &set || (types & ~XID_EVENT) != 0)) {
        return NVML_NOT_SUPPORTED;
    }
    if (result == NVML_OK) {
        device->registered = true;
    }
    return result;
}

// Returns the number at position `index` of a list such as "31,79".
static bool nth(const char *list, unsigned index, unsigned long long *ret)
{
    while (index-- > 0) {
        if (!(list = strchr(list, ','))) {
            return false;
        }
        list++;
    }
    *ret = strtoull(list, NULL, 10);
    return *list != '\0';
}

// Never waits, because the events that the test wants are in the file already.
CALL(nvmlEventSetWait_v2, nvml_set which, struct nvml_event *ret, unsigned timeout_ms)
{
    char list[256];
    unsigned long long xid;
    int result = fake_begin();

    (void)timeout_ms;
    if (result != NVML_OK || which != &set) {
        return result != NVML_OK ? result : NVML_INVALID_ARGUMENT;
    }
    for (unsigned i = 0; i < fake_count(); i++) {
        struct nvml_device *d = &fake_devices[i];

        if (d->registered && fake_text(d, "xid", list) && nth(list, d->delivered, &xid)) {
            d->delivered++;
            *ret = (struct nvml_event){.device = d,
                                       .type = XID_EVENT,
                                       .data = xid,
                                       .gpu_instance = UINT32_MAX,
                                       .compute_instance = UINT32_MAX};
            return NVML_OK;
        }
    }
    return NVML_TIMEOUT;
}
