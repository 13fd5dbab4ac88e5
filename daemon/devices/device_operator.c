// What an operator asks for: drain, quarantine, inspection. Everything else that is known of the
// device stays as it is (see device.c).
#include "daemon/devices/device.h"
#include <stdio.h>

static void say(device_reason reason, const char *text, const char *otherwise)
{
    (void)snprintf(reason, DEVICE_REASON_MAX, "%s", text && text[0] ? text : otherwise);
}

void device_drain(struct device *device, const char *reason)
{
    say(device->drain, reason, "drained by an operator");
    device_settle(device);
}

void device_undrain(struct device *device)
{
    if (device->drain[0] && device_is_gpu(device)) {
        device_suspect(device, "it was drained");
    }
    device->drain[0] = '\0';
    device_settle(device);
}

void device_quarantine_by_operator(struct device *device, const char *reason)
{
    say(device->operator_quarantine, reason, "put into quarantine by an operator");
    device_settle(device);
}

void device_inspection_begins(struct device *device)
{
    device->inspecting = true;
    device_settle(device);
}

void device_inspection_put_off(struct device *device)
{
    device->inspecting = false;
    device_settle(device);
}

void device_inspection_ends(struct device *device, const char *failure, uint64_t now_ns)
{
    device->inspecting = false;
    if (failure) {
        device_quarantine(device, failure, now_ns);
        return;
    }
    device->operator_quarantine[0] = '\0';
    device->quarantine[0] = '\0';
    device->suspicion[0] = '\0';
    device->failures = 0;
    device->last_failed = 0;
    device->probe_passed = true;
    device->control_due = true;
    device_settle(device);
}
