// When blobs are swept, and what is spared: everything that an unfinished job or a problem that is
// known needs. A full disk makes it sweep early. Reads jobs and measurement setups, changes neither.
#ifndef DAEMON_UPKEEP_SWEEPER_H
#define DAEMON_UPKEEP_SWEEPER_H

#include "daemon/run/setup.h"
#include "daemon/state/job_table.h"
#include "daemon/store/blob.h"
#include "daemon/store/blob_sweep.h"
#include <stdbool.h>

#define SWEEPER_GRACE_S 3600

struct sweeper {
    uv_loop_t *loop;
    const struct job_table *jobs;
    const struct setups *setups;
    const struct blob_store *blobs;
    uint64_t max_bytes;
    uint64_t ticks;
    uint64_t early; // the tick from which on it may sweep early again
    uint64_t full;  // blob_store_full at the last sweep
    bool sweeping;
    atomic_bool stop; // read by the thread that sweeps
};

// Once a second: sweeps at once for the first time, and then every ten minutes; between them when a
// put has found no room since the last sweep, but at most once a minute.
void sweeper_tick(struct sweeper *sweeper);
// Ends the sweep that is under way at its next file, and begins no other.
void sweeper_stop(struct sweeper *sweeper);
// A sweep is under way; the sweeper must stay until it is not.
bool sweeper_busy(const struct sweeper *sweeper);

#endif
