// Decides when old blobs are removed and which are kept: those that an unfinished job or a
// measurement setup needs. A full disk makes it sweep early. Called by daemon.c. Reads jobs and
// measurement setups and changes neither; blob_sweep.c removes the files.
#ifndef DAEMON_UPKEEP_SWEEPER_H
#define DAEMON_UPKEEP_SWEEPER_H

#include "daemon/run/setup.h"
#include "daemon/state/job_table.h"
#include "daemon/store/blob.h"
#include "daemon/store/blob_sweep.h"
#include <stdbool.h>

#define SWEEPER_GRACE_S 3600 // a blob that was used within so many seconds is kept

struct sweeper {
    uv_loop_t *loop;
    const struct job_table *jobs;
    const struct setups *setups;
    struct blob_store *blobs;
    uint64_t max_bytes; // size above which blobs are removed
    uint64_t ticks;     // calls of sweeper_tick
    uint64_t early;     // first tick at which it may sweep early again
    uint64_t full;      // value of blob_store_full at the last sweep
    bool sweeping;      // a sweep is in progress
    atomic_bool stop;   // read by the thread that sweeps
};

// To be called once a second. Sweeps at the first call and then every ten minutes. Sweeps earlier,
// but at most once a minute, when a blob has found no room on the disk since the last sweep or
// waits for room within the limits.
void sweeper_tick(struct sweeper *sweeper);
// Stops the sweep in progress at its next file, and begins no other.
void sweeper_stop(struct sweeper *sweeper);
// Returns whether a sweep is in progress. The sweeper must not be freed then.
bool sweeper_busy(const struct sweeper *sweeper);

#endif
