// On which device a candidate was measured, so that a job that measures it again can go to another
// one. Used by lifecycle.c alone.
#ifndef DAEMON_JOBS_FIRST_DEVICE_H
#define DAEMON_JOBS_FIRST_DEVICE_H

#include "common/digest.h"
#include "daemon/state/job.h"
#include <stdint.h>

#define FIRST_DEVICE_SLOTS 4096 // candidates remembered, at most

// A candidate that falls into the place of another one replaces it. Zeroed it is empty.
struct first_devices {
    struct {
        struct digest what;
        uint32_t device; // number, as devices_number; 0: the place is empty
    } slot[FIRST_DEVICE_SLOTS];
};

// The job, of which a device has this number, has a result.
void first_devices_keep(struct first_devices *devices, const struct job *job, uint32_t device);
// Returns the number of the device on which an equal job had its result, 0 when that is not known.
uint32_t first_devices_find(const struct first_devices *devices, const struct job *job);

#endif
