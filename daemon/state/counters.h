// Counters of what has happened since the daemon started: results by verdict, finished jobs by
// state, seconds of devices and compilers, and the use of each of the searches that were active
// last. The modules where something happens increase them; status.c and metrics.c read them. This
// module knows nothing of jobs or devices.
#ifndef DAEMON_STATE_COUNTERS_H
#define DAEMON_STATE_COUNTERS_H

#include "proto/verdict.h"
#include <stdint.h>
#include <uthash.h>

#define COUNTERS_OPS 32           // above the number of every operation of the daemon
#define COUNTERS_SEARCHES_MAX 256 // searches that are counted by name

enum {
#define X(number, id, name, ratio, text) COUNTERS_##id,
    VERDICTS(X)
#undef X
        COUNTERS_VERDICTS // number of verdicts
};

struct counters_search {
    char *tenant;           // owner of the search; NULL in `others`
    char *name;             // unique within the tenant; NULL in `others`
    char *path;             // key of the table: "tenant/name"; NULL in `others`
    double device_seconds;  // devices held by its runs
    double compile_seconds; // compilations of its candidates
    uint64_t measured;      // runs on a device that gave a result
    char *problem;          // of its last run; NULL: none yet
    double best[3];         // log2 of the best speedup of a sealed run, and its interval; NaN: none
    uint64_t planned;       // measurements that it means to make; 0: not said
    double planned_seconds; // device-seconds that it means to use; NaN: not said
    UT_hash_handle hh;
};

struct counters {
    uint64_t verdict[COUNTERS_VERDICTS]; // results of measurements, without those of the cache
    uint64_t ended[JOB_STATE_COUNT];     // finished jobs by terminal state
    uint64_t cached;                     // jobs that were answered from a cache
    uint64_t lost;                       // runs whose executor was lost
    double device_seconds;               // seconds that runs held devices
    double compile_seconds;              // seconds that compilers ran
    uint64_t request[COUNTERS_OPS];      // requests by operation
    struct counters_search *searches;    // by path, the least recently active search first
    struct counters_search others;       // sum of the searches that had to leave the table
};

// Frees the table of searches. The struct itself belongs to the caller.
void counters_release(struct counters *counters);

// Returns the counters of the tenant's search of this name and marks it as the most recently active
// one. A new search is added; when the table is full, the least recently active search is added to
// `others` and removed. The pointer is valid until the next call.
struct counters_search *counters_search(struct counters *counters, const char *tenant,
                                        const char *name);

#endif
