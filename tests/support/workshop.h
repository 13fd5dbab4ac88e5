// The parts of a daemon through which jobs go, without processes, connections and real time: a real
// ledger and blob store in a temporary folder, a fake clock, CPU devices, and executors whose
// outcomes the test gives. The loop runs only inside these functions.
#ifndef TESTS_SUPPORT_WORKSHOP_H
#define TESTS_SUPPORT_WORKSHOP_H

#include "common/clock.h"
#include "daemon/devices/device.h"
#include "daemon/jobs/submission.h"
#include "daemon/run/executors.h"
#include "daemon/state/counters.h"
#include "daemon/state/job.h"
#include "daemon/state/parts.h"
#include "daemon/store/secret.h"

// A run of kcast-exec that has begun and has no outcome yet.
struct execution {
    char *name;        // what is compiled ("candidate.c"), or "measure"
    struct bytes plan; // packed
    char *group;       // executor_config.keep; NULL: a process of its own
    uint64_t deadline_ms;
    bool stopped; // executor_stop was called: it ends the next time the loop runs
    struct executor *executor;
    struct execution *prev;
    struct execution *next;
};

struct workshop {
    uv_loop_t loop;
    struct clock clock; // fake
    char *dir;
    struct daemon_parts parts;
    struct devices devices;
    struct secret secret;
    struct counters counters;
    struct execution *executions; // oldest first
    size_t begun;                 // number of executions started so far
    bool broken;                  // no execution can be started, as on a host without processes
    struct digest problem;        // this and the next two are blobs in the store
    struct digest reference;
    struct digest baseline;
};

// Opens a workshop with so many CPU devices of one class. A test that waits in vain is killed after
// a minute.
void workshop_open(struct workshop *w, size_t cores);
// Stops what still runs and frees everything.
void workshop_close(struct workshop *w);

// Stores a blob and returns its digest.
struct digest workshop_put(struct workshop *w, const char *text);
// Runs the loop until something has happened.
void workshop_turn(struct workshop *w);
// Runs the loop until everything that was given to the ledger and the blob store has come back.
void workshop_settle(struct workshop *w);
// Runs the loop until the job has this state and the ledger has it too.
void workshop_until_state(struct workshop *w, const struct job *job, enum job_state state);
// Runs the loop until there is an execution of this name, and returns the oldest.
struct execution *workshop_execution(struct workshop *w, const char *name);

// The next five end an execution, which is freed. The object of a source is "OBJ" and the source;
// error is the reason of a compile error, or NULL. The verdict of a measurement must be no ratio.
void workshop_compiled(struct workshop *w, struct execution *execution, const char *error);
void workshop_measured(struct workshop *w, struct execution *execution, uint64_t verdict);
// The same of a candidate that ran unsealed, or not.
void workshop_measured_as(struct workshop *w, struct execution *execution, uint64_t verdict,
                          bool unsealed);
// A timeout that is doubtful.
void workshop_doubtful(struct workshop *w, struct execution *execution);
void workshop_lost(struct workshop *w, struct execution *execution, const char *reason);
// Ends a compilation with this outcome.
void workshop_compile_outcome(struct workshop *w, struct execution *execution,
                              const struct compile_outcome *outcome);
// Compiles whatever is asked for until the job has this state.
void workshop_compile_until(struct workshop *w, const struct job *job, enum job_state state);

// Submits a job of tenant "t" and search "s" with this key, of a candidate with this source,
// through submission.c. Returns NULL when it was refused; *error says why. With error NULL a
// refusal fails the test.
struct job *workshop_submit(struct workshop *w, uint64_t kind, const char *key, const char *source,
                            struct err *error);
// The body of such a SUBMIT, for tests that change it. submission_start takes it.
struct submit workshop_submit_body(struct workshop *w, uint64_t kind, const char *key,
                                   const char *source);

#endif
