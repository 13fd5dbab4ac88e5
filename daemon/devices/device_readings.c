// What was read last of a device: its clocks, temperature, power and throttle reasons.
#include "common/clock.h"
#include "common/mem.h"
#include "daemon/devices/device.h"
#include <stdlib.h>

void device_take_readings(struct device *device, struct fact *readings_taken, size_t count,
                          uint64_t now_ns)
{
    for (size_t i = 0; i < device->readings_count; i++) {
        message_clear(&fact_message, &device->readings[i]);
    }
    free(device->readings);
    device->readings = readings_taken;
    device->readings_count = count;
    device->read_ns = now_ns;
}

struct fact *device_readings(const struct device *device, uint64_t now_ns, size_t *ret_count)
{
    size_t count = device->readings_count;
    struct fact *ret = message_copy_all(&fact_message, device->readings, count);

    if (count > 0) {
        ret[count++] = (struct fact){.name = xstrdup("read_seconds_ago"),
                                     .value = clock_seconds(now_ns - device->read_ns)};
    }
    *ret_count = count;
    return ret;
}
