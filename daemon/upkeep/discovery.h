// Device discovery when the daemon starts: runs `kcast-exec probe`, and `kcast-exec cuda-probe`
// where GPUs are wanted, and adds what they find to the devices. Called by daemon.c.
#ifndef DAEMON_UPKEEP_DISCOVERY_H
#define DAEMON_UPKEEP_DISCOVERY_H

#include "daemon/devices/cores.h"
#include "daemon/devices/device.h"
#include "daemon/devices/device_spec.h"
#include "daemon/run/executors.h"
#include "daemon/state/parts.h"

// What the pointers point to outlives the discovery.
struct discovery_config {
    const struct daemon_parts *parts;      // uses executors and limits, and fills devices
    const struct device_spec *device_spec; // which devices are wanted
    const struct cores *cores;             // cores that are devices
    // Called once from the loop, but not after discovery_stop. The devices have been added, or
    // error says why the daemon cannot serve.
    void (*on_end)(void *owner, const struct err *error);
    void *owner;
};

struct discovery {
    struct discovery_config config;
    struct executor *executor; // while a probe runs, else NULL
    bool stopped;              // discovery_stop was called
};

// Starts the first probe. Errors are those of executor_start; on_end is not called then.
MUST_CHECK int discovery_start(struct discovery *discovery, const struct discovery_config *config,
                               struct err *err);
// Stops the probe that runs. No-op when the struct is zeroed or the discovery has ended.
void discovery_stop(struct discovery *discovery);

#endif
