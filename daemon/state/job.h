// One job: what it is to do, where it is, and the only function that moves it from one state to
// another.
#ifndef DAEMON_STATE_JOB_H
#define DAEMON_STATE_JOB_H

#include "common/digest.h"
#include "common/mem.h"
#include "daemon/sched/queue.h"
#include "proto/verdict.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#define JOB_LOST_MAX 2         // executors; then the job is BURIED
#define JOB_RESTART_LOST_MAX 5 // the same, when the whole daemon went down with it
#define JOB_LOG_MAX 4096       // bytes of a compiler's warnings that a job carries

struct account;
struct compiled;
struct device_class;
struct tenant_jobs;
struct preparation;
struct run;
struct setup;
struct wait_link;

// Number of jobs in memory by state.
struct job_census {
    size_t state[JOB_STATE_COUNT];
};

// A client's name for a body of work; jobs are fair between searches. Lives as long as it has jobs.
struct search {
    uint64_t id;                     // unique in this process
    char *tenant;                    // whose it is
    char *name;                      // as the client gave it, unique within the tenant
    char *place;                     // in the table of searches: tenant, slash, name
    struct account *account;         // of which it is a user; NULL without accounts
    struct tenant_jobs *tenant_jobs; // jobs.c's count of its tenant's jobs
    struct job *jobs;                // by key
    size_t unfinished;               // of them, not in a terminal state
    struct job_census *census;       // of the table of jobs
    UT_hash_handle hh;
};

// There may be 200,000 of these: what many jobs share is in search and measurement setup, results are in the
// ledger.
struct job {
    uint64_t id;                       // never used again
    struct search *search;             // whose it is
    char *key;                         // the client's name for it, unique within the search
    struct setup *setup;               // problem, reference, baseline
    struct device_class *device_class; // where it is to run, or would; NULL: problem not read yet
    struct digest candidate;           // blob of the source
    struct digest spec;                // SHA-256 of the packed job_spec
    double anchor_log2;                // job_spec; NaN when absent
    double precision_log2;             // job_spec; NaN when absent
    double max_seconds;                // job_spec; NaN when absent
    uint64_t repeat;                   // job_spec
    uint64_t max_launches;             // job_spec
    uint64_t priority;                 // submit
    uint64_t submitted_ns;             // monotonic; start of the process for reloaded ones
    int64_t finished_s;                // wall clock, 0 before
    struct compiled *compiled;         // of its candidate; READY and RUNNING, else NULL
    struct queue_entry queued;         // QUEUED: intake; READY: its class's queue
    struct preparation *preparation;   // while it is being compiled, else NULL
    struct run *run;                   // while a device is held for it, else NULL
    struct wait_link *waits;           // WAITs that are parked for it
    struct bytes result;               // packed result or compiled, while it is resident
    struct job *resident_prev;         // jobs whose result is in memory, oldest first
    struct job *resident_next;
    char *reason;          // of CANCELLED and BURIED, else NULL
    float compile_seconds; // spent for this job, 0 when everything was cached
    uint8_t attempt;       // executors lost so far
    uint8_t disturbed;     // measurements that were given up because something else was at work
    uint8_t kind;          // enum job_kind
    uint8_t state;         // enum job_state; only job_set_state writes it
    uint8_t cause;         // enum job_cause, of CANCELLED and BURIED
    uint8_t wanted_class;  // enum queue_class, as its client wants it
    bool fresh;            // job_spec
    bool journalled;       // the ledger has it: other SUBMITs may be answered by it
    bool settling;         // its end is on the way to the ledger; nothing else may end it
    bool unsaved; // the ledger could not take its end (disk full): its result stays in memory
    bool cached;  // answered from the result cache
    bool doomed;  // cancelled before the ledger had it: ends as soon as it does
    UT_hash_handle by_id;
    UT_hash_handle by_key;
};

// Whether a job may go from one state to the other. False for numbers that are no states.
bool job_edge_allowed(enum job_state from, enum job_state to);

// The one place where a job changes its state. Keeps the census and the search's count. An edge
// that is not in the table is a defect: it is logged and the process aborts (the ledger then knows
// the last state that was true). What a job carries of its compilation is
// freed when it has ended or is to be compiled again.
void job_set_state(struct job *job, enum job_state state);

// What its candidate's compilation gave, for its measurement and its result. Takes the insides of
// *compiled_taken; of a longer log the first JOB_LOG_MAX bytes, because many jobs wait at once.
void job_carry_compiled(struct job *job, struct compiled *compiled_taken);
// Frees that. No-op when there is nothing.
void job_drop_compiled(struct job *job);

#endif
