// Moves jobs along: intake, compilation, queue, device, end. The only module that decides what
// happens to a job next; the others do their part and call back.
#ifndef DAEMON_JOBS_LIFECYCLE_H
#define DAEMON_JOBS_LIFECYCLE_H

#include "daemon/counters.h"
#include "daemon/devices/device.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/job_table.h"
#include "daemon/run/compiler.h"
#include "daemon/run/measure.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/store/ledger.h"

struct lifecycle;

struct lifecycle_config {
    struct job_table *jobs;
    struct devices *devices;
    struct ledger *ledger;
    struct completions *completions;
    struct blob_store *blobs;
    struct account_table *accounts;
    struct executors *executors;
    const struct secret *secret;
    struct counters *counters; // counted into
    size_t compile_slots;
    uint64_t compile_seconds; // of one compilation
    uint64_t slack_ms;        // by which kcast-exec may exceed its plan
    uint64_t grace_ms;        // SIGTERM to SIGKILL
    bool sandbox_off;
    bool exclusive; // compilations and measurements exclude each other
};

struct lifecycle *lifecycle_create(uv_loop_t *loop, const struct lifecycle_config *config);
// Starts nothing more, kills what runs (the ledger is told that those jobs are QUEUED, not lost).
// Then wait until not busy before freeing.
void lifecycle_stop(struct lifecycle *lifecycle);
bool lifecycle_busy(const struct lifecycle *lifecycle);
void lifecycle_free(struct lifecycle *lifecycle); // NULL is fine

// Starts ahead what measurements on GPUs will need; nothing where there are none.
void lifecycle_prestart(struct lifecycle *lifecycle);

struct setups *lifecycle_setups(const struct lifecycle *lifecycle);
size_t lifecycle_intake(const struct lifecycle *lifecycle);    // jobs that wait to be prepared
size_t lifecycle_compiling(const struct lifecycle *lifecycle); // compile children
bool lifecycle_is_held(const struct lifecycle *lifecycle);     // compiler_is_held

// A QUEUED job that the ledger has: let it begin. Its spec's fields and measurement setup are set.
void lifecycle_admit(struct lifecycle *lifecycle, struct job *job);
// Stops the job wherever it is and ends it as CANCELLED. No-op for a job that has ended or is about
// to.
void lifecycle_cancel(struct lifecycle *lifecycle, struct job *job, const char *reason);
// Once a second: charges what runs, ends what waits for a budget that is used up, ends quarantines.
void lifecycle_tick(struct lifecycle *lifecycle);

// A device may take jobs that could not before.
void lifecycle_kick(struct lifecycle *lifecycle);

// The name of the device a job runs on; NULL when on none.
const char *lifecycle_device_name(const struct job *job);

#endif
