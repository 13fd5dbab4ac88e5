// What a reading says about a GPU. Called by the watch over GPUs. Pure: no library, no clock, no
// device.
#ifndef DAEMON_DEVICES_HEALTH_H
#define DAEMON_DEVICES_HEALTH_H

#include "daemon/devices/nvml.h"

#define HEALTH_REASON_MAX 256 // bytes of a sentence, its NUL included

// From good to bad.
enum health_level {
    HEALTH_OK,
    HEALTH_THROTTLED, // not to be used while this is so: heat, a power brake, another program
    HEALTH_FAULTY,    // the hardware failed: to be left alone for some time, then probed
    HEALTH_LOST       // it cannot be reached
};

struct health {
    enum health_level level;
    char reason[HEALTH_REASON_MAX]; // "" when OK
    uint64_t program_xid; // an Xid event that is the fault of the program that ran; 0: none
};

// Sets *ret to the worst that the reading `now` says. before is the reading before it, NULL for the
// first one. foreign_pid is a process that uses the GPU and does not belong to this daemon, 0:
// none.
void health_assess(struct health *ret, const struct nvml_state *now,
                   const struct nvml_state *before, uint32_t foreign_pid);

// What an Xid number says about the GPU. HEALTH_OK when a program is at fault or the number is
// unknown (docs/measuring.md has the source).
enum health_level health_of_xid(uint64_t xid);

#endif
