// One measurement on one device: reads the blobs, tells the ledger, runs kcast-exec, checks the
// report. Holds the device from start to the verified end of the executor. Knows jobs only by
// what it copies from them at the start.
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
#define MEASURE_MEMORY ((uint64_t)8 << 30) // address space of a runner
// Of a measurement altogether: each of the four runners at its limit. What they leave of it has
// room for the tensors and the judge.
#define MEASURE_GROUP_MEMORY (4 * MEASURE_MEMORY)
#define MEASURE_GROUP_PROCESSES 64             // and threads; a handful is normal
#define MEASURE_OUTCOME_MAX ((size_t)16 << 20) // bytes
#define MEASURE_DISTURBED_MAX 3 // times of one job; the last one's result is given and says so

struct run;

enum run_outcome {
    RUN_RESULT,    // end->result is what the job gets
    RUN_CACHED,    // an equal job was measured in the meantime: end->cached
    RUN_LOST,      // the executor failed: no one knows anything about the candidate
    RUN_NO_START,  // the host could not start an executor: nobody's fault
    RUN_TOO_LARGE, // the plan cannot be sent: the job's own fault
    RUN_DISTURBED, // heat, a brake or another program spoilt it: to be measured again
    RUN_NO_OBJECT, // a blob is missing or damaged; the executor was not started
    RUN_CANCELLED, // run_cancel was called
};

struct run_end {
    enum run_outcome outcome;
    struct result *result; // the callee may change it
    struct bytes *cached;  // packed; the callee may take it
    bool cacheable;        // its A/A control was in order, and nothing disturbed it
    const char *reason;    // for all but RUN_RESULT, RUN_CACHED and RUN_CANCELLED
    size_t blob;           // for RUN_NO_OBJECT: which
    double held_s;
    const struct device *device; // that it was on
    const char *tenant, *search; // whose run it was
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
    // The device is free again (or out of service). job: NULL when the run was cancelled. The run
    // is freed afterwards.
    void (*on_end)(void *owner, struct job *job, struct run_end *end);
    void *owner;
};

// Takes the device (READY) for the job (READY, in no queue); job->run is the run until the end.
// ticket is queue_take's; the run settles it, and charges the search's account. parts and events
// outlive the run.
void run_start(const struct daemon_parts *parts, const struct run_events *events, struct job *job,
               struct device *device, const struct queue_ticket *ticket);
// Charges what it has held the device for until now.
void run_charge(struct run *run);
// The job no longer wants it. Kills the executor; on_end follows with no job. Detaches job->run at
// once. No-op without a run.
void run_cancel(struct job *job);
// Keeps a process ready that holds this GPU's context and has measured nothing.
void run_prestart(const struct daemon_parts *parts, const struct device *device);
const struct device *run_device(const struct run *run);

#endif
