// For how long a device was held during the last minute. device.c adds each hold when it ends; who
// asks adds the one that lasts. Time comes in.
#ifndef DAEMON_DEVICES_UTILISATION_H
#define DAEMON_DEVICES_UTILISATION_H

#include <stdint.h>

#define UTILISATION_SECONDS 60

struct device;

// What was held in each second of the monotonic clock. Zeroed, it is a device that was never held.
struct held_minute {
    uint64_t second[UTILISATION_SECONDS + 1];  // number of the second that an entry is for
    uint32_t held_ns[UTILISATION_SECONDS + 1]; // during it
};

// The device was held during this time.
void held_minute_add(struct held_minute *minute, uint64_t from_ns, uint64_t to_ns);
// Sets the parts of the time since started_ns, and of the last minute of it, for which jobs held
// the device, 0 to 1; the hold that lasts is counted. started_ns: when the daemon began to serve.
// Of the second that the minute begins in as much counts as lies in the minute.
void device_utilisation(const struct device *device, uint64_t started_ns, uint64_t now_ns,
                        double *ret_start, double *ret_minute);

#endif
