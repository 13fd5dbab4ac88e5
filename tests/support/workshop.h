// The parts of a daemon that jobs go through, without processes, connections and seconds that pass:
// a real ledger and blob store in a temporary folder, a fake clock, CPU devices, and executors that
// the test answers for. The loop runs only inside these functions.
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

// A run of kcast-exec that has begun and that nobody has answered yet.
struct execution {
    char *name;        // what is compiled ("candidate.c"), or "measure"
    struct bytes plan; // packed
    bool stopped;      // executor_stop; ends by itself the next time the loop runs
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
    size_t begun;                 // executions ever
    bool broken;                  // none can be begun
    struct digest problem;        // blobs that are there
    struct digest reference;
    struct digest baseline;
};

// With so many CPU devices of one class. A test that waits for what does not come is killed.
void workshop_open(struct workshop *w, size_t cores);
// In good order: what still runs is stopped.
void workshop_close(struct workshop *w);

struct digest workshop_put(struct workshop *w, const char *text); // stores a blob
// One turn of the loop; waits for something to happen.
void workshop_turn(struct workshop *w);
// Until everything that was given to the ledger and the blob store has come back.
void workshop_settle(struct workshop *w);
void workshop_until_state(struct workshop *w, const struct job *job, enum job_state state);
// The oldest unanswered execution of this name, when it has begun.
struct execution *workshop_execution(struct workshop *w, const char *name);

// The ends of an execution, which is gone afterwards. A source compiles to OBJ and itself; a reason
// (not NULL) is a compile error. A measurement has a verdict that is no ratio.
void workshop_compiled(struct workshop *w, struct execution *execution, const char *error);
void workshop_measured(struct workshop *w, struct execution *execution, uint64_t verdict);
void workshop_lost(struct workshop *w, struct execution *execution, const char *reason);
// Compiles whatever is asked for until the job has this state.
void workshop_compile_until(struct workshop *w, const struct job *job, enum job_state state);

// A job of tenant "t" and search "s" with this key, of a candidate with this source, through
// submission.c. error: why it was refused, may be NULL when it may not be. NULL then.
struct job *workshop_submit(struct workshop *w, uint64_t kind, const char *key, const char *source,
                            struct err *error);
// The body of such a SUBMIT, to be changed and handed over; taken by submission_start.
struct submit workshop_submit_body(struct workshop *w, uint64_t kind, const char *key,
                                   const char *source);

#endif
