// How many candidates a search has under way at a time: the size of its batches and the pipeline's
// lag. Chosen once, before a search begins, and kept in its first event, so that decisions follow
// from the log. Called by client/search/search_start.c and, for simulated daemons, by
// replay/tasks.c. Pure.
#ifndef CLIENT_SEARCH_PIPELINE_WIDTH_H
#define CLIENT_SEARCH_PIPELINE_WIDTH_H

#include "client/policy/policy.h"
#include <stdbool.h>
#include <stdint.h>

#define PIPELINE_BATCH_USUAL 4 // the default of --batch

// What serves the search.
struct pipeline_capacity {
    uint64_t devices;       // that measure; 0 counts as 1
    uint64_t compile_slots; // compilations at a time; 0: not known
    double worker_seconds;  // what a request for forecasts takes the worker; NaN: not known
    bool compares_points;   // a worker may forecast every point before it is compiled
};

struct pipeline_width {
    uint64_t batch;  // candidates of each of the first PIPELINE_EARLY batches
    uint64_t wide;   // candidates of each later batch, up to batch RUN_BATCHES_NARROW
    uint64_t widest; // and of each after that; 0: as many
    uint64_t lag;    // batches under way at a time, see client/search/pipeline.h
};

// Settles the width: what is not 0 in *width was asked for and stays, but for a policy with a batch
// size of its own. batch must not be 0. The lag is such that as many candidates are under way as
// keep devices and compile slots busy. Batches are as policy_batches says, and with more than one
// device as large as the worker can serve. See docs/design/kcast.md.
void pipeline_width_settle(struct pipeline_width *width, const struct policy *policy,
                           const struct pipeline_capacity *capacity);

#endif
