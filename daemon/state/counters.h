// What happened since the start, counted: results by verdict, ends by state, seconds of devices and
// compilers, and what each search used, for a bounded number of searches. Written by the modules
// where it happens; read by status.c and metrics.c. Knows nothing of what it counts.
#ifndef DAEMON_STATE_COUNTERS_H
#define DAEMON_STATE_COUNTERS_H

#include "proto/verdict.h"
#include <stdint.h>
#include <uthash.h>

#define COUNTERS_OPS 32           // numbers of the daemon's operations are below
#define COUNTERS_SEARCHES_MAX 256 // then the one that was not heard of for longest joins the others

enum {
#define X(number, id, name, ratio, text) COUNTERS_##id,
    VERDICTS(X)
#undef X
        COUNTERS_VERDICTS // their number
};

struct counters_search {
    char *tenant; // whose it is; NULL for the others
    char *name;
    char *place; // in the table: tenant, slash, name
    double device_seconds;
    double compile_seconds;
    uint64_t measured; // runs on a device that gave a result
    UT_hash_handle hh;
};

struct counters {
    uint64_t verdict[COUNTERS_VERDICTS]; // results that were made here, not taken from a cache
    uint64_t ended[JOB_STATE_COUNT];     // jobs by terminal state
    uint64_t cached;                     // jobs that were answered from a cache
    uint64_t lost;                       // runs whose executor was lost
    double device_seconds;               // devices held, all of them
    double compile_seconds;              // compilers run
    uint64_t request[COUNTERS_OPS];      // by operation
    struct counters_search *searches;    // by place; who was heard of last comes last
    struct counters_search others;       // sum of those that are no longer in the table; no name
};

void counters_release(struct counters *counters);

// The tenant's search of this name, made when it is new; it has just been heard of. Valid until the
// next call.
struct counters_search *counters_search(struct counters *counters, const char *tenant,
                                        const char *name);

#endif
