// What measure.c (the way of a run) and measure_result.c (what its result says) share. Nobody else
// includes it.
#ifndef DAEMON_RUN_MEASURE_INSIDE_H
#define DAEMON_RUN_MEASURE_INSIDE_H

#include "daemon/run/measure.h"
#include "daemon/run/outcome.h"

struct run {
    const struct daemon_parts *parts;
    const struct run_events *events;
    struct job *job; // NULL: the run was cancelled
    uint64_t id;     // of the job
    struct device *device;
    struct queue_ticket ticket; // from the queue of the device's class
    struct account_hold hold;   // of the search's account
    char *tenant, *search_name;
    char *place;                       // tenant and search, as in search->place
    unsigned pending;                  // operations of the three that have not come back
    struct bytes blob[RUN_BLOB_COUNT]; // those that have been read
    struct bytes cached;               // a packed result that answers the job; empty: none
    bool failed;                       // a blob could not be read; end.blob says which
    bool host_failed;                  // because the host has no descriptors left
    struct executor *executor;
    struct measure_expectation expected;
    struct measure_outcome outcome; // what the executor wrote
    bool has_outcome;
    struct err unread;  // why the outcome could not be read
    struct digest pair; // of problem and baseline, for A/A controls
    double anchor_log2;
    double precision_log2;
    uint64_t max_launches;
    double max_seconds;
    double queue_seconds;
    double compile_seconds;
    uint64_t attempt;
    uint8_t disturbed; // how many runs of the job were disturbed before
    uint64_t seed;
    uint64_t hidden_seed;
    bool control;
    bool fresh;
    char reason[ERR_TEXT_MAX];
    struct run_end end;
};

// Writes into the result what the daemon knows better than the executor: device, class, digests,
// seed, attempt, conditions, compilation, seconds.
void measure_fill_result(struct run *run, bool disturbed, struct result *result);

#endif
