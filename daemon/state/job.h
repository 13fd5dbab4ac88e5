// One job: its specification, its state, where it is just now, and what has become of it. Owns the
// table of permitted state changes; job_set_state is the only function that changes a state. The
// modules of daemon/jobs and daemon/run read and fill the other fields. This module knows nothing
// of queues, devices or the ledger.
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

#define JOB_LOST_MAX 2         // lost executors after which a job becomes BURIED
#define JOB_RESTART_LOST_MAX 5 // attempts after which a job is BURIED when the daemon restarts
#define JOB_LOG_MAX 4096       // bytes of compiler warnings that a job keeps

struct account;
struct clock;
struct compiled;
struct device_class;
struct tenant_jobs;
struct preparation;
struct run;
struct setup;
struct stages;
struct wait_link;

// Number of the jobs in memory by state.
struct job_census {
    size_t state[JOB_STATE_COUNT];
};

// A search of a client: the jobs that share one name. Queues are fair between searches. job_table.c
// makes a search with its first job and frees it with its last one.
struct search {
    uint64_t id;                     // unique in this process
    char *tenant;                    // owner of the search
    char *name;                      // given by the client, unique within the tenant
    char *path;                      // key of the table of searches: "tenant/name"
    struct account *account;         // charged for its runs; NULL when there are no accounts
    struct tenant_jobs *tenant_jobs; // job_table.c counts the tenant's jobs here
    struct job *jobs;                // hash table by key
    size_t unfinished;               // number of its jobs that are in no terminal state
    struct job_census *census;       // of the job table that the search belongs to
    struct stages *stages;           // where its time goes; of the same table
    const struct clock *clock;       // by which its jobs change their states
    UT_hash_handle hh;
};

// When a job reached its states, for the last time where that was more than once. On the monotonic
// clock of this process; 0: it did not, or before the daemon's start.
struct job_stamps {
    uint64_t compiling_ns;
    uint64_t ready_ns;
    uint64_t running_ns;
    uint64_t ended_ns;
};

// There may be 200,000 jobs, so a job is small. What many jobs share is in their search and in
// their measurement setup; results are in the ledger. "From job_spec" means that the field is
// copied from the message of that name (proto/daemon.def).
struct job {
    uint64_t id;                       // a number that is never used again
    struct search *search;             // the search that it belongs to
    char *key;                         // given by the client, unique within the search
    struct setup *setup;               // measurement setup: problem, reference, baseline
    struct device_class *device_class; // where it is to run; NULL until its problem has been read
    struct digest candidate;           // blob of the source
    struct digest spec;                // submission_spec_digest: whether two SUBMITs are the same
    double anchor_log2;                // from job_spec; NaN when absent
    double precision_log2;             // from job_spec; NaN when absent
    double max_seconds;                // from job_spec; NaN when absent
    uint64_t repeat;                   // from job_spec
    uint64_t max_launches;             // from job_spec
    uint64_t priority;                 // from the message submit; lower numbers go first
    uint64_t submitted_ns;             // monotonic clock; the time of the reload after a restart
    struct job_stamps stamps;          // job_set_state writes them
    int64_t finished_s;                // wall clock; 0 while the job is unfinished
    struct bytes compiled;             // its compiled candidate, packed, in READY and RUNNING
    struct digest object;              // blob of its object, while it has compiled
    struct digest reference;           // blob of what was recorded of the reference for this
                                       // candidate; zero: the setup's object is meant
    struct queue_entry queued;         // in QUEUED for its preparation, in READY for a device
    struct preparation *preparation;   // while it is being compiled, else NULL
    struct run *ahead;                 // what was read ahead for its run, else NULL
    struct run *run;                   // while it has a device, else NULL
    struct wait_link *waits;           // list of the parked WAITs that ask for it
    struct bytes result;               // packed result or compiled, while it is kept in memory
    struct job *resident_prev;         // list of the jobs whose result is in memory, oldest first
    struct job *resident_next;
    char *reason;          // why it is CANCELLED or BURIED, else NULL
    float compile_seconds; // time of its compilation; 0 when everything was cached
    uint8_t attempt;       // executors lost so far
    uint8_t disturbed;     // measurements that were discarded because they were disturbed
    bool doubted;          // so was one because its timeout was doubtful
    uint8_t kind;          // enum job_kind
    uint8_t state;         // enum job_state; only job_set_state writes it
    uint8_t cause;         // enum job_cause of CANCELLED and BURIED
    uint8_t wanted_class;  // enum queue_class that the client asked for
    bool fresh;            // from job_spec, like the next three
    bool features_only;
    bool no_machine_code;
    bool unsealed;
    bool restarted;        // it was in the ledger when the daemon started
    bool journalled;       // the ledger has it, so that equal SUBMITs may be answered with it
    bool completing;       // its end is on the way to the ledger; nothing else may end it
    bool unsaved;          // the ledger could not take its end (disk full); only memory has it
    bool cached;           // answered from the result cache
    bool cancel_requested; // cancelled before the ledger had it; it ends once the ledger has it
    UT_hash_handle by_id;
    UT_hash_handle by_key;
};

// Returns whether a job may go from one state to the other. False for numbers that are no states.
bool job_edge_allowed(enum job_state from, enum job_state to);

// The job whose `queued` this is.
struct job *job_of_entry(struct queue_entry *entry);

// Changes the state of a job and updates the census, the search's count and stages, and the stamps.
// This is the only function that does. A change that the table of edges does not have is a defect:
// it is logged and the process aborts; the ledger then has the last state that was true. In all
// states but READY and RUNNING the compiled candidate is freed.
void job_set_state(struct job *job, enum job_state state);

// Keeps the compiled candidate with the job, for its measurement and its result. Takes the contents
// of *compiled_taken and leaves it initialised. A log is cut to JOB_LOG_MAX bytes, and all is
// kept packed, because many jobs may wait at once.
void job_carry_compiled(struct job *job, struct compiled *compiled_taken);
// What job_carry_compiled has kept, for a job in READY or RUNNING. The caller clears *ret.
void job_read_compiled(const struct job *job, struct compiled *ret);
// Frees the compiled candidate. No-op when there is none.
void job_drop_compiled(struct job *job);

#endif
