// What a reading says about a GPU. Pure: no library, no clock, no device.
#ifndef DAEMON_DEVICES_HEALTH_H
#define DAEMON_DEVICES_HEALTH_H

#include "daemon/devices/nvml.h"

#define HEALTH_REASON_MAX 256

enum health_level {
    HEALTH_OK,
    HEALTH_THROTTLED, // not to be used as long as this is so: heat, a power brake, another program
    HEALTH_FAULTY,    // the hardware failed: to be left alone, then probed
    HEALTH_LOST       // it cannot be reached
};

struct health {
    enum health_level level;
    char reason[HEALTH_REASON_MAX]; // "" when well
    // An event that blames the program that ran, for the log; 0: none.
    uint64_t program_xid;
};

// The worst that `now` says; before is the reading before it, NULL for the first. stranger is the
// pid of a process that uses the GPU and is not ours, 0: none.
void health_assess(struct health *ret, const struct nvml_state *now,
                   const struct nvml_state *before, uint32_t stranger);

// The Xid numbers that are known here, and what they blame (docs/measuring.md has the source).
enum health_level health_of_xid(uint64_t xid);

#endif
