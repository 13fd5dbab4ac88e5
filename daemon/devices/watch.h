// Watches over the GPUs: reads them, tells the devices what health.h makes of it, and probes those
// that have to be. Without NVML nothing is read; GPUs are still probed.
#ifndef DAEMON_DEVICES_WATCH_H
#define DAEMON_DEVICES_WATCH_H

#include "daemon/devices/device.h"
#include "daemon/run/executors.h"
#include <stdbool.h>
#include <uv.h>

#define WATCH_MS 1000     // from reading to reading
#define WATCH_BUSY_MS 250 // while a GPU is held

struct watch;

// What is pointed to outlives the watch.
struct watch_config {
    struct devices *devices;
    struct executors *executors;
    uint64_t grace_ms;
    bool share; // other programs may use the GPUs too
    // A device may take jobs that could not before.
    void (*on_change)(void *owner);
    void *owner;
};

// NULL when there is no GPU among the devices. Logs whether there is NVML.
struct watch *watch_create(uv_loop_t *loop, const struct watch_config *config);
// Reads no more; then wait until not busy before freeing.
void watch_stop(struct watch *watch);
bool watch_busy(const struct watch *watch);
void watch_free(struct watch *watch); // the loop must run once more for its timer

#endif
