// Watches the health of the GPUs: reads them by NVML, tells device.c what health.c makes of the
// readings, and probes GPUs that have to be probed. Without NVML nothing is read, and GPUs are
// still probed. Called by daemon.c. Knows nothing of jobs.
#ifndef DAEMON_UPKEEP_WATCH_H
#define DAEMON_UPKEEP_WATCH_H

#include "daemon/state/parts.h"
#include <stdbool.h>

#define WATCH_MS 1000     // time between readings
#define WATCH_BUSY_MS 250 // time between readings while a GPU is held

struct watch;

// Returns NULL when there is no GPU among the devices. Logs after the first reading whether NVML is
// available. `parts` outlives it. Uses devices, executors, scheduler, limits and loop.
struct watch *watch_create(const struct daemon_parts *parts);
// Stops reading. The caller waits until it is no longer busy before it frees it. NULL is fine.
void watch_stop(struct watch *watch);
// Returns whether a reading is in progress or the timer is not closed. False for NULL.
bool watch_busy(const struct watch *watch);
void watch_free(struct watch *watch); // NULL is fine

#endif
