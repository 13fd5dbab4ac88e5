// The A/A controls of a device: the baseline measured against itself. The last one for each problem
// and baseline is kept, oldest first. Two bad ones in a row put the device into quarantine.
#include "common/log.h"
#include "common/mem.h"
#include "daemon/devices/device.h"
#include <stdio.h>
#include <string.h>

static struct device_control *find_control(const struct device *device, const struct digest *pair)
{
    for (size_t i = 0; i < device->control_count; i++) {
        if (digest_equal(&device->controls[i].pair, pair)) {
            return &device->controls[i];
        }
    }
    return NULL;
}

bool device_needs_control(const struct device *device, const struct digest *pair, uint64_t now_ns)
{
    const struct device_control *control = find_control(device, pair);

    return device->control_due || device->bad_controls > 0 || !control ||
           now_ns - control->at_ns > DEVICE_CONTROL_AGE_NS;
}

static void remember(struct device *device, const struct digest *pair,
                     const struct estimate *estimate, uint64_t now_ns)
{
    struct device_control *control = find_control(device, pair);
    size_t index;

    // The list is ordered by age. A renewed control goes to its end, and the oldest one makes room.
    if (control || device->control_count == DEVICE_CONTROLS_MAX) {
        index = control ? (size_t)(control - device->controls) : 0;
        memmove(&device->controls[index], &device->controls[index + 1],
                (device->control_count - index - 1) * sizeof(*device->controls));
        device->control_count--;
    }
    device->controls[device->control_count++] =
        (struct device_control){.pair = *pair, .at_ns = now_ns, .estimate = *estimate};
    device->last_control = *estimate;
    device->has_control = true;
}

bool device_add_control(struct device *device, const struct digest *pair,
                        const struct estimate *estimate, uint64_t now_ns)
{
    bool bad = estimate->lo > DEVICE_CONTROL_LOG2 || estimate->hi < -DEVICE_CONTROL_LOG2;

    remember(device, pair, estimate, now_ns);
    device->control_due = false;
    if (!bad) {
        device->bad_controls = 0;
        return true;
    }
    log_event(LOG_WARNING, "control-off device=%s log2=%.4f lo=%.4f hi=%.4f", device->name,
              estimate->log2, estimate->lo, estimate->hi);
    if (++device->bad_controls < 2) {
        return false;
    }
    device->bad_controls = 1; // on probation after the quarantine
    device_reason text;
    (void)snprintf(text, sizeof(text),
                   "the baseline measured against itself differs by more than 1 %% twice in a row"
                   " (log2 ratio %.4f, interval %.4f to %.4f)",
                   estimate->log2, estimate->lo, estimate->hi);
    device_quarantine(device, text, now_ns);
    return false;
}

const struct estimate *device_last_control(const struct device *device, const struct digest *pair)
{
    const struct device_control *control = find_control(device, pair);

    return control ? &control->estimate : NULL;
}

struct digest device_control_pair(const struct digest *problem, const struct digest *baseline)
{
    struct digest_state *state = digest_begin();

    digest_add(state, problem, sizeof(*problem));
    digest_add(state, baseline, sizeof(*baseline));
    return digest_end(state);
}
