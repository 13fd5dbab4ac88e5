// One measurement on one device, called a run: it reads the blobs, tells the ledger, starts
// kcast-exec and checks the outcome. It has the device from its start until the executor has ended.
// What it needs besides a device can be read before there is one. Called by lifecycle.c and, for
// run_would_wait, by scheduler.c. Decides nothing about what happens to the job afterwards.
#ifndef DAEMON_RUN_MEASURE_H
#define DAEMON_RUN_MEASURE_H

#include "daemon/devices/device.h"
#include "daemon/run/compiler.h"
#include "daemon/run/executors.h"
#include "daemon/sched/account.h"
#include "daemon/state/job.h"
#include "daemon/state/parts.h"
#include "daemon/store/blob.h"
#include "daemon/store/ledger.h"

#define MEASURE_LAUNCH_SECONDS 10.0        // longest single launch
#define MEASURE_MEMORY ((uint64_t)8 << 30) // bytes of address space of a runner
// Bytes of all processes of a measurement together: four runners at their limit. What these leave
// unused has room for the tensors and the process that checks them.
#define MEASURE_GROUP_MEMORY (4 * MEASURE_MEMORY)
#define MEASURE_GROUP_PROCESSES 64      // and threads; a handful is normal
#define MEASURE_GROUP_PROCESSES_GPU 256 // an unsealed candidate has an interpreter and a compiler
#define MEASURE_OUTCOME_MAX ((size_t)16 << 20) // bytes
#define MEASURE_AHEAD_MAX ((size_t)4 << 20)    // bytes of blobs that are kept ahead for a run
#define MEASURE_DISTURBED_MAX                                                                      \
    3 // disturbed runs of one job; the last one's result counts all the same

struct run;

enum run_outcome {
    RUN_RESULT,    // end->result is what the job gets
    RUN_CACHED,    // an equal job was measured in the meantime: end->cached
    RUN_LOST,      // the executor failed, so nothing is known about the candidate
    RUN_NO_START,  // the host could not start an executor or open a blob: nobody's fault
    RUN_TOO_LARGE, // the plan is too large to be sent: the job's own fault
    RUN_DISTURBED, // heat, throttling or another program disturbed it: to be measured again
    RUN_DOUBTFUL,  // a launch did not end in time, for the first time: to be measured once more
    RUN_NO_OBJECT, // a blob is missing or damaged; the executor was not started
    RUN_CANCELLED, // run_cancel was called
};

// Valid during on_end.
struct run_end {
    enum run_outcome outcome;
    struct result *result; // RUN_RESULT; the callee may change it
    struct bytes *cached;  // RUN_CACHED: packed; the callee may take it
    bool cacheable;        // the result's A/A control was good and nothing disturbed it
    const char *reason;    // for all but RUN_RESULT, RUN_CACHED and RUN_CANCELLED
    size_t blob;           // RUN_NO_OBJECT: which of RUN_BLOB_…
    double held_s;         // seconds that the device was held: from when a process had the plan
    const struct device *device;
    const char *tenant, *search; // of the job
};

enum {
    RUN_BLOB_PROBLEM,
    RUN_BLOB_REFERENCE,
    RUN_BLOB_BASELINE,
    RUN_BLOB_CANDIDATE,
    RUN_BLOB_COUNT
};

struct run_events {
    // The executor is about to start.
    void (*on_started)(void *owner, struct job *job);
    // The device is free again, or out of service. job is NULL when the run was cancelled. The run
    // is freed afterwards.
    void (*on_end)(void *owner, struct job *job, struct run_end *end);
    void *owner;
};

// Reads what the run of a READY job needs before a device is free: job->ahead is the run from then
// on, which must be NULL before. run_start or run_forget follows. on_back is called once, when
// nothing of it is under way any more, also after these two.
void run_prepare(const struct daemon_parts *parts, struct job *job, void (*on_back)(void *owner),
                 void *owner);
// Gives up what run_prepare has read. No effect when there is nothing.
void run_forget(struct job *job);
// A job with this run_cache_key has a result now, which may answer this one as well: a run that is
// prepared for such a job asks the cache again. The result has been posted to the ledger.
void run_ask_again(struct job *job, const struct digest *cache_key);
struct digest run_cache_key(const struct daemon_parts *parts, const struct job *job);
// Begins a run of the job (READY, in no queue) on the device (READY). job->run is the run until its
// end, which may come within this call. grant comes from queue_take; the run finishes it and
// charges the search's account. parts and events outlive the run.
void run_start(const struct daemon_parts *parts, const struct run_events *events, struct job *job,
               struct device *device, const struct queue_grant *grant);
// Charges the search for the time that the device has been held until now.
void run_charge(struct run *run);
// The job no longer wants its run: job->run is NULL from now on, the executor is stopped, and
// on_end follows without a job. No effect when the job has no run.
void run_cancel(struct job *job);
// Keeps processes ready that hold a context of this GPU and have measured nothing. on_first is told
// how the first of them has started (prestarted.h).
void run_prestart(const struct daemon_parts *parts, const struct device *device,
                  prestarted_first *on_first, void *owner);
// Whether a run that needs such a process of the device would have to wait for one that is being
// started.
bool run_would_wait(const struct daemon_parts *parts, const struct device *device);
// The device that it runs on.
const struct device *run_device(const struct run *run);

#endif
