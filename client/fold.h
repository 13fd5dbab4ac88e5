// The state of a run as a fold over its events: what the search decides from, what reports and exports show. Pure; does no I/O.
#ifndef CLIENT_FOLD_H
#define CLIENT_FOLD_H

#include "client/run.h"
#include "contract/verdict.h"
#include "proto/all.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fold_candidate {
    struct run_proposed proposed;
    struct compiled *compiled;      // NULL until compiled
    uint64_t object_duplicate_of;   // candidate with the same object, or 0
    struct forecast *forecast;      // NULL: none yet, or none could be had
    char *forecast_reason;          // why there is none
    bool forecast_done;
    struct run_decided decided;     // decision 0 until decided
    struct result *result;          // first measurement (search or audit); NULL until then
    struct result *record;          // the replication in a fresh process
    bool given_up;                  // the daemon buried the job
    uint64_t measured_order;        // 1, 2, 3 … in order of first measurements; 0: not measured
    double seconds_before;          // device-seconds spent when its first measurement arrived
};

struct fold_incumbent {
    struct run_incumbent event;
    double at;
};

// What a language model took for one batch.
struct fold_ask {
    uint64_t first; // candidate that was to come next
    uint64_t generator;
    uint64_t tokens; // when they were paid for …
    double cost;     // … in the worker's currency
};

struct fold {
    struct run_started started;
    struct run_session session;     // the latest
    size_t sessions;
    struct compiled *baseline;
    struct fold_candidate *candidate; // candidate i is candidate[i - 1]
    size_t candidate_count;
    struct fold_incumbent *incumbent; // in order
    size_t incumbent_count;
    struct run_certified certified; // the latest; zeroed before the first
    size_t certifications;
    uint64_t considered;            // proposed and not a duplicate source
    uint64_t compiled_ok, compile_failed;
    uint64_t forecasts;             // forecasts made
    uint64_t proposals, known;      // by a language model, and of these the ones that were there already
    struct fold_ask *ask;           // in order
    size_t ask_count;
    bool asking_over;               // the language model has left a search that has other generators
    char *asking_over_reason;       // what it said last; NULL: nothing
    uint64_t input_tokens, output_tokens; // that language models used for all of these
    double model_cost;              // in the worker's currency
    uint64_t measured;              // candidates measured (records not counted again)
    uint64_t audited, trusted, reused;
    uint64_t records;               // replications
    double device_seconds;          // held, all measurements
    double compile_seconds;
    double first_at, last_at;       // wall clock of first and last event
    bool finished;
    char *finish_reason;
    uint64_t last_sequence;
    uint64_t observed_up_to;        // event up to which outcomes were told to the worker
    uint64_t observed_candidates;   // the outcomes of candidates 1 … this were told
    double wall_seconds;            // clients were at work, all sessions together
    double session_at;              // wall clock of the latest session's beginning
};

void fold_init(struct fold *fold);
void fold_release(struct fold *fold);
// Applies one event (takes the insides of its body). ERR_CORRUPT when it does not follow from what came before.
MUST_CHECK int fold_apply(struct fold *fold, struct run_event *event, struct err *err);
// Folds a whole file.
MUST_CHECK int fold_run(struct fold *fold, struct run *run, struct err *err);
// log2 speedup of the incumbent; 0 (the baseline) without one.
double fold_incumbent_log2(const struct fold *fold);
// The same after candidates 1 … last only.
double fold_incumbent_before(const struct fold *fold, uint64_t last);
// Device-seconds that a result is charged; 0 for NULL and for an answer from a cache.
double fold_held_seconds(const struct result *result);
const struct fold_candidate *fold_best(const struct fold *fold); // NULL without an incumbent
const struct fold_candidate *fold_best_before(const struct fold *fold, uint64_t last); // the same

#endif
