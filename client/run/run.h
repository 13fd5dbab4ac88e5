// The run file: one SQLite database that is the whole record of a search. Events are only ever appended; each append is
// durable before it returns. Blobs (sources) are kept in the same file by SHA-256. Owns the SQLite handle.
#ifndef CLIENT_RUN_RUN_H
#define CLIENT_RUN_RUN_H

#include "common/digest.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_FORMAT 1                  // user_version of the file
#define RUN_BATCH_DEFAULT 8           // candidates of a batch, in run files that do not say
#define RUN_BATCH_MAX 64              // so many fit into one request for forecasts
#define RUN_APPLICATION_ID 0x4b434153 // "KCAS"

// number, id, message, meaning
#define RUN_EVENTS(X)                                                                              \
    X(1, STARTED, run_started, "what was asked for")                                               \
    X(2, SESSION, run_session, "a client process opened the run")                                  \
    X(3, BASELINE, run_baseline, "the baseline was compiled")                                      \
    X(4, PROPOSED, run_proposed, "a generator made a candidate")                                   \
    X(5, COMPILED, run_compiled, "the compile jail's answer")                                      \
    X(6, FORECAST, run_forecast, "the worker's answer")                                            \
    X(7, DECIDED, run_decided, "the router's decision")                                            \
    X(8, MEASURED, run_measured, "the daemon's answer")                                            \
    X(9, INCUMBENT, run_incumbent, "a new best candidate, confirmed")                              \
    X(10, OBSERVED, run_observed, "outcomes were told to the worker")                              \
    X(11, FINISHED, run_finished, "the search ended")                                              \
    X(12, ASKED, run_asked, "the worker's answer when it was asked for candidates")                \
    X(13, CERTIFIED, run_certified, "policy risk has another threshold")

enum run_event_kind {
#define X(number, id, message, text) RUN_##id = number,
    RUN_EVENTS(X)
#undef X
};

enum decision { DECISION_MEASURE = 1, DECISION_TRUST = 2, DECISION_AUDIT = 3, DECISION_REUSE = 4 };
enum purpose { PURPOSE_SEARCH = 1, PURPOSE_AUDIT = 2, PURPOSE_RECORD = 3 };

struct run;

struct run_event {
    uint64_t sequence; // 1, 2, 3 …
    double at;         // wall clock, seconds since 1970; never used for decisions
    enum run_event_kind kind;
    const struct message *message; // descriptor of body
    void *body;                    // owned by the event
};

// Creates path; ERR_CONFLICT when it exists.
MUST_CHECK int run_create(struct run **ret, const char *path, struct err *err);
// One that no file holds and that is gone with run_close: for replaying.
MUST_CHECK int run_create_in_memory(struct run **ret, struct err *err);
// Opens for appending; takes a lock so that two clients cannot drive one run (ERR_BUSY).
// ERR_VERSION for another RUN_FORMAT, ERR_CORRUPT for what is no run file; neither is changed.
MUST_CHECK int run_open(struct run **ret, const char *path, struct err *err);
// Opens for reading; works while another process appends.
MUST_CHECK int run_open_read(struct run **ret, const char *path, struct err *err);
void run_close(struct run *run);

// Appends in one transaction; durable on return. *ret_sequence may be NULL.
MUST_CHECK int run_append(struct run *run, enum run_event_kind kind, const void *body,
                          uint64_t *ret_sequence, struct err *err);
// Several appends as one transaction: begin, appends, commit.
MUST_CHECK int run_begin(struct run *run, struct err *err);
MUST_CHECK int run_commit(struct run *run, struct err *err);
void run_rollback(struct run *run);

// Calls visit for every event with sequence > after, in order. The event is freed afterwards; visit may take body by zeroing the struct.
MUST_CHECK int run_replay(struct run *run, uint64_t after,
                          int (*visit)(void *owner, struct run_event *event, struct err *err),
                          void *owner, struct err *err);

MUST_CHECK int run_put_blob(struct run *run, const void *data, size_t len, struct digest *ret,
                            struct err *err);
MUST_CHECK int run_get_blob(struct run *run, const struct digest *digest, struct bytes *ret,
                            struct err *err);

const char *run_event_name(uint64_t kind);              // "unknown" for anything else
const struct message *run_event_message(uint64_t kind); // NULL for anything else

#endif
