// The state of a run as a run state over its events: what the search decides from, what reports and exports show. Pure; does no I/O.
#ifndef CLIENT_RUN_RUN_STATE_H
#define CLIENT_RUN_RUN_STATE_H

#include "client/run/run.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_state_candidate {
    struct run_proposed proposed;
    struct compiled *compiled;    // NULL until compiled
    uint64_t object_duplicate_of; // candidate with the same object, or 0
    struct forecast *forecast;    // NULL: none yet, or none could be had
    char *forecast_reason;        // why there is none
    bool forecast_done;
    struct run_decided decided; // decision 0 until decided
    struct result *result;      // first measurement (search or audit); NULL until then
    struct result *record;      // the replication in a fresh process
    bool given_up;              // the daemon buried the job
    uint64_t measured_order;    // 1, 2, 3 … in order of first measurements; 0: not measured
    double seconds_before;      // device-seconds spent when its first measurement arrived
};

struct run_state_incumbent {
    struct run_incumbent event;
    double at;
};

// What a language model took for one batch.
struct run_state_ask {
    uint64_t first; // candidate that was to come next
    uint64_t generator;
    uint64_t tokens; // when they were paid for …
    double cost;     // … in the worker's currency
};

struct run_state {
    struct run_started started;
    struct run_session session; // the latest
    size_t sessions;
    struct compiled *baseline;
    struct run_state_candidate *candidate; // candidate i is candidate[i - 1]
    size_t candidate_count;
    struct run_state_incumbent *incumbent; // in order
    size_t incumbent_count;
    struct run_certified certified; // the latest; zeroed before the first
    size_t certifications;
    uint64_t considered; // proposed and not a duplicate source
    uint64_t compiled_ok, compile_failed;
    uint64_t forecasts;        // forecasts made
    uint64_t proposals, known; // by a language model, and of these the ones that were there already
    struct run_state_ask *ask; // in order
    size_t ask_count;
    bool asking_over;         // the language model has left a search that has other generators
    char *asking_over_reason; // what it said last; NULL: nothing
    uint64_t input_tokens, output_tokens; // that language models used for all of these
    double model_cost;                    // in the worker's currency
    uint64_t measured;                    // candidates measured (records not counted again)
    uint64_t audited, trusted, reused;
    uint64_t records;      // replications
    double device_seconds; // held, all measurements
    double compile_seconds;
    double first_at, last_at; // wall clock of first and last event
    bool finished;
    char *finish_reason;
    uint64_t last_sequence;
    uint64_t observed_up_to;      // event up to which outcomes were told to the worker
    uint64_t observed_candidates; // the outcomes of candidates 1 … this were told
    double wall_seconds;          // clients were at work, all sessions together
    double session_at;            // wall clock of the latest session's beginning
};

void run_state_init(struct run_state *run_state);
void run_state_release(struct run_state *run_state);
// Applies one event (takes the insides of its body). ERR_CORRUPT when it does not follow from what came before.
MUST_CHECK int run_state_apply(struct run_state *run_state, struct run_event *event,
                               struct err *err);
// Folds a whole file.
MUST_CHECK int run_state_read(struct run_state *run_state, struct run *run, struct err *err);
// log2 speedup of the incumbent; 0 (the baseline) without one.
double run_state_incumbent_log2(const struct run_state *run_state);
// The same after candidates 1 … last only.
double run_state_incumbent_before(const struct run_state *run_state, uint64_t last);
// Device-seconds that a result is charged; 0 for NULL and for an answer from a cache.
double run_state_held_seconds(const struct result *result);
const struct run_state_candidate *
run_state_best(const struct run_state *run_state); // NULL without an incumbent
const struct run_state_candidate *run_state_best_before(const struct run_state *run_state,
                                                        uint64_t last); // the same

#endif
