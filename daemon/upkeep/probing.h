// Finding out at start what this machine has: kcast-exec probe, and where GPUs are wanted
// kcast-exec cuda-probe. Fills the devices.
#ifndef DAEMON_UPKEEP_PROBING_H
#define DAEMON_UPKEEP_PROBING_H

#include "daemon/devices/cores.h"
#include "daemon/devices/device.h"
#include "daemon/devices/device_spec.h"
#include "daemon/run/executors.h"
#include "daemon/state/parts.h"

// What is pointed to outlives the probing.
struct probing_config {
    const struct daemon_parts *parts; // executors, limits, and devices that are initialised
    const struct device_spec *device_spec;
    const struct cores *cores;
    // Once, from the loop: the devices are there, or error says why they cannot be served. Not
    // after probing_stop.
    void (*on_end)(void *owner, const struct err *error);
    void *owner;
};

struct probing {
    struct probing_config config;
    struct executor *executor; // while a probe runs
    bool stopped;
};

MUST_CHECK int probing_start(struct probing *probing, const struct probing_config *config,
                             struct err *err);
// Ends what runs. No-op on one that is zeroed or over.
void probing_stop(struct probing *probing);

#endif
