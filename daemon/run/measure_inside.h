// What measure.c (the way of a run), measure_ahead.c (what it needs besides a device) and
// measure_result.c (what its result says) share. Nobody else includes it.
#ifndef DAEMON_RUN_MEASURE_INSIDE_H
#define DAEMON_RUN_MEASURE_INSIDE_H

#include "daemon/run/measure.h"
#include "daemon/run/outcome.h"

struct run {
    const struct daemon_parts *parts;
    const struct run_events *events;
    struct job *job; // NULL: the run was cancelled or forgotten
    uint64_t id;     // of the job
    const struct device_class *device_class;
    struct device *device;                  // NULL: it is prepared ahead
    struct queue_grant grant;               // from the queue of the device's class
    struct account_reservation reservation; // of the search's account
    char *tenant, *search_name;
    char *path;                        // "tenant/search", as in search->path
    unsigned pending;                  // operations that have not come back
    void (*on_back)(void *owner);      // run_prepare: to be called when they all have; or NULL
    void *owner;                       // of on_back
    bool marked;                       // the ledger has been told that the job is RUNNING
    struct bytes blob[RUN_BLOB_COUNT]; // those that have been read
    struct bytes packed;               // the plan, packed ahead; empty: it was not
    struct digest cache_key;           // of the question to the result cache
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
    bool doubted;      // a run of the job was doubtful before
    uint64_t seed;
    uint64_t hidden_seed;
    bool control;
    bool fresh;
    bool unsealed; // the candidate's object is one that runs unsealed
    char reason[ERR_TEXT_MAX];
    struct run_end end;
};

// A run of the job without a device, of which nothing has been read.
struct run *measure_run_new(const struct daemon_parts *parts, struct job *job);
void measure_run_free(struct run *run); // nothing of it is pending
// Begins to read the blobs and, unless the job is fresh, asks the cache.
void measure_read(struct run *run);
// Tells the ledger that the job is RUNNING; that is pending until it is written.
void measure_mark(struct run *run);
// Returns what was prepared of the job's run, which may still be pending; NULL when nothing was, or
// something of it failed.
struct run *measure_take_ahead(struct job *job);
// The packed plan for the run's device; empty when it is too large. The seed is drawn when the
// blobs are packed: the candidate is fixed then.
struct bytes measure_pack(struct run *run);
// Nothing is pending any more, and the run has a device. In measure.c.
void measure_go_on(struct run *run);

// Writes into the result what the daemon knows better than the executor: device, class, digests,
// seed, attempt, conditions, compilation, seconds.
void measure_fill_result(struct run *run, bool disturbed, struct result *result);

#endif
