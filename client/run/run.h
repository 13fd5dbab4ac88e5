// The run file: one SQLite database that is the whole record of a search. Events are only ever
// appended, and each append is durable before it returns. The sources of candidates are kept in the
// same file as blobs, by SHA-256. Everything that works on runs calls this module; it knows what
// the events look like (proto/run.def), and nothing of daemons, workers or strategies.
#ifndef CLIENT_RUN_RUN_H
#define CLIENT_RUN_RUN_H

#include "common/digest.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_FORMAT 2                  // user_version of the SQLite file
#define RUN_FORMAT_OLD 1              // without digests; gets them when it is opened for appending
#define RUN_BATCH_DEFAULT 8           // candidates of a batch, in run files that do not say
#define RUN_BATCH_MAX 64              // so many fit into one request for forecasts
#define RUN_LAG_DEFAULT 2             // lag of the pipeline, in run files that do not say
#define RUN_GENERATORS_MAX 4          // generators of one run
#define RUN_LAG_MAX 16                // batches under way at a time, at most
#define RUN_BATCHES_NARROW 64         // batches before those of run_started.widest
#define RUN_TARGET_LEAST 1.001        // speedups with which a search may be told to end
#define RUN_TARGET_MOST 1e9           // the same
#define RUN_APPLICATION_ID 0x4b434153 // "KCAS", application_id of the SQLite file

// Kinds of events: number in the file, id, message of the body, meaning.
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
    X(13, CERTIFIED, run_certified, "policy risk has another threshold")                           \
    X(14, SURVEYED, run_surveyed, "what was never measured was forecast again, at the end")        \
    X(15, PLAY_OFF, run_play_off, "the best candidates are to be measured against each other")     \
    X(16, GAME, run_game, "two of them were measured against each other")                          \
    X(17, PLAYED_OFF, run_played_off, "the play-off has ended")                                    \
    X(18, EXTENDED, run_extended, "a resume changed the limits")                                   \
    X(20, TRUSTED, run_trusted, "other forecasts are trusted, or none")                            \
    X(21, LOOKED_BACK, run_looked_back, "trusted candidates were forecast anew")                   \
    X(22, SCREENED, run_screened, "points were compared by forecasts, and the best proposed")      \
    X(23, ORDERED, run_ordered, "a language model said which proposals go first")                  \
    X(24, PUT_OFF, run_put_off, "a compilation that takes long is not waited for")

enum run_event_kind {
#define X(number, id, message, text) RUN_##id = number,
    RUN_EVENTS(X)
#undef X
};

// What is done with a candidate after its forecast: measure it, trust the forecast, measure it
// although the forecast is trusted, or reuse the outcome of a candidate with the same object.
enum decision { DECISION_MEASURE = 1, DECISION_TRUST = 2, DECISION_AUDIT = 3, DECISION_REUSE = 4 };
// What a forecaster must have shown before its forecasts are trusted: nothing beyond the confidence
// that it states itself, as in run files of earlier releases, or skill in this search
// (client/policy/trust.h).
enum run_trust_rule { RUN_TRUST_CALLS = 0, RUN_TRUST_SKILL = 1 };
// Rules that are newer than the first run files, as bits of run_started.rules: a search decides by
// those that it began with.
enum run_rule {
    RUN_RULE_KEPT_PROMISES = 1, // when a search ends by its confidence follows from how far
                                // screenings have kept their promises
    RUN_RULE_HANDED_ON = 2,     // a screening hands the best of what it passed over to the next one
    RUN_RULE_WAITING = 8,       // what programs and language models propose beyond a batch's room
                                // waits, and is ranked before anything of it is compiled
    RUN_RULE_AHEAD = 16,        // candidates from which a model first learns are proposed at once
    RUN_RULE_WORTH = 4,         // policy `threshold` asks whether a candidate is worth its cost now
    RUN_RULE_IGNORANT = 32, // what is chosen when the worker can say nothing of any point is not
                            // asked about again when it has compiled
    RUN_RULE_PUT_OFF = 64,  // on several devices no batch waits for its slowest compilations
};
#define RUN_RULES_NOW                                                                              \
    (RUN_RULE_KEPT_PROMISES | RUN_RULE_HANDED_ON | RUN_RULE_WORTH | RUN_RULE_WAITING |             \
     RUN_RULE_AHEAD | RUN_RULE_IGNORANT | RUN_RULE_PUT_OFF)
// Why a measurement was made: a decision to measure, an audit, or the replication that a new best
// needs.
enum purpose { PURPOSE_SEARCH = 1, PURPOSE_AUDIT = 2, PURPOSE_RECORD = 3 };

struct run;

struct run_event {
    uint64_t sequence; // number of the event in its run, from 1 without gaps
    double at;         // wall clock, seconds since 1970; no decision depends on it
    enum run_event_kind kind;
    const struct message *message; // descriptor of body
    void *body;                    // owned by the event
};

// Creates the file, open for appending. ERR_CONFLICT when it exists.
MUST_CHECK int run_create(struct run **ret, const char *path, struct err *err);
// Creates a run in memory, for simulations. It is gone with run_close.
MUST_CHECK int run_create_in_memory(struct run **ret, struct err *err);
// Opens a run for appending and locks it, so that two clients cannot drive the same run: the second
// one gets ERR_BUSY. ERR_VERSION for a format that this kcast does not know, and ERR_CORRUPT for a
// file that is no run, lacks events or has damaged ones, or has the write-ahead log of another
// database; such files are not changed.
MUST_CHECK int run_open(struct run **ret, const char *path, struct err *err);
// Opens a run for reading, also while another process appends to it. Errors as run_open; which
// events are missing or damaged is said by run_replay.
MUST_CHECK int run_open_read(struct run **ret, const char *path, struct err *err);
// ERR_CORRUPT when nothing is recorded in the run.
MUST_CHECK int run_need_events(const struct run *run, struct err *err);
// A sentence about what may be missing from the run because its write-ahead log was damaged when it
// was opened; NULL when all is well. It is the run's.
const char *run_warning(const struct run *run);
// Rolls an open transaction back and frees the run. NULL is fine.
void run_close(struct run *run);

// Appends one event. Outside run_begin … run_commit it is a transaction of its own and durable on
// return. ret_sequence, which may be NULL, receives the number of the event. body stays the
// caller's.
MUST_CHECK int run_append(struct run *run, enum run_event_kind kind, const void *body,
                          uint64_t *ret_sequence, struct err *err);
// Several appends and blobs as one transaction: run_begin, the appends, run_commit. run_rollback
// drops what was appended since run_begin, and does nothing without an open transaction. A commit
// that fails has rolled back.
MUST_CHECK int run_begin(struct run *run, struct err *err);
MUST_CHECK int run_commit(struct run *run, struct err *err);
void run_rollback(struct run *run);

// Calls visit for every event whose number is greater than after, in order, until visit fails. The
// event is freed after the call; visit takes parts of the body over by zeroing them. ERR_CORRUPT
// when an event is missing, is not as it was written, or cannot be decoded; the sentence names it.
// The events behind it can be had by another call.
MUST_CHECK int run_replay(struct run *run, uint64_t after,
                          int (*visit)(void *owner, struct run_event *event, struct err *err),
                          void *owner, struct err *err);

// Stores bytes under their SHA-256, once. ret, which may be NULL, receives the digest.
MUST_CHECK int run_put_blob(struct run *run, const void *data, size_t len, struct digest *ret,
                            struct err *err);
// Reads a blob and checks its digest; *ret is the caller's. ERR_NOT_FOUND when it is missing,
// ERR_CORRUPT when it is damaged.
MUST_CHECK int run_get_blob(struct run *run, const struct digest *digest, struct bytes *ret,
                            struct err *err);

// The number of the last event.
uint64_t run_last(const struct run *run);

// The name of a kind of event ("proposed"); "unknown" for another number.
const char *run_event_name(uint64_t kind);
// The descriptor of the body of a kind of event; NULL for another number.
const struct message *run_event_message(uint64_t kind);

#endif
