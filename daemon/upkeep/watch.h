// Watches over the GPUs: reads them, tells the devices what health.h makes of it, and probes those
// that have to be. Without NVML nothing is read; GPUs are still probed.
#ifndef DAEMON_UPKEEP_WATCH_H
#define DAEMON_UPKEEP_WATCH_H

#include "daemon/state/parts.h"
#include <stdbool.h>

#define WATCH_MS 1000     // from reading to reading
#define WATCH_BUSY_MS 250 // while a GPU is held

struct watch;

// NULL when there is no GPU among the devices. Logs whether there is NVML.
// parts outlive it; devices, executors, scheduler, limits and loop are used.
struct watch *watch_create(const struct daemon_parts *parts);
// Reads no more; then wait until not busy before freeing.
void watch_stop(struct watch *watch);
bool watch_busy(const struct watch *watch);
void watch_free(struct watch *watch); // the loop must run once more for its timer

#endif
