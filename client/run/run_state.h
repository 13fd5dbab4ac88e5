// The state of a run: what follows from its events so far. Searches decide from it, reports and
// exports show it. Pure: it does no input or output, and the same events give the same state.
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
    struct compiled *compiled;    // NULL until it has been compiled
    uint64_t object_duplicate_of; // earlier candidate that compiled to the same object; 0: none
    struct forecast *forecast;    // NULL when there is none, or none yet
    char *forecast_reason;        // why there is no forecast
    bool forecast_done;           // the question was answered, by a forecast or by a reason
    struct run_decided decided;   // decision is 0 until one was made
    struct result *result;        // first measurement (search or audit); NULL until then
    struct result *record;        // replication, measured in a fresh process; NULL until then
    bool barred;                  // it ran unsealed, which this search accepts for no record
    bool given_up;                // the daemon gave the job up, so there is no result
    bool put_off; // its compilation is not waited for; proposed.duplicate_of is the candidate that
                  // goes on in its stead, once there is one
    double drawn_before; // probability of having been drawn as an audit at an end before the last
                         // extension; 0: it was not drawn then
    uint64_t measured_order; // its place among first measurements, from 1; 0: not measured
    double seconds_before;   // device seconds spent when its first measurement arrived
    // When its jobs reached their states; NULL where the file does not say it.
    struct job_times *compile_times;
    struct job_times *measure_times; // of the first measurement
    struct job_times *record_times;  // of the replication
};

// A stretch of time at work: a session, or what follows a jump of the clock.
struct run_state_window {
    double from, to;   // wall clock, seconds since 1970
    double wall_from;  // seconds at work before it
    double started_at; // from here on the session's jobs are submitted; before: start-up
    bool recorded;     // the session's events say when jobs reached their states
};

// A time during which the worker was asked for forecasts or told outcomes.
struct run_state_span {
    double from, to; // wall clock, seconds since 1970
};

// A device on which the run has measured.
struct run_state_device {
    char *pool;          // its daemon; NULL where there was only one
    char *name;          // such as "cuda0"
    uint64_t runs;       // measurements, replications included, without answers from a cache
    double held_seconds; // for which these held it
};

// A candidate that became the best of the run.
struct run_state_incumbent {
    struct run_incumbent event;
    double at; // wall clock, seconds since 1970
};

// What language models used to write one batch, as far as it is said.
struct run_state_ask {
    uint64_t first;     // number of the first candidate of the batch
    uint64_t generator; // number of the generator that asked
    uint64_t tokens;    // tokens used when the answers were first given, not from a cache
    double cost;        // their price in the worker's currency
};

// A candidate that was proposed beyond what its batch had room for.
struct run_state_waiting {
    uint64_t generator; // as in run_proposed
    struct run_answer answer;
};

struct run_state {
    struct run_started started;
    struct run_session session; // the latest session
    size_t sessions;
    struct compiled *baseline;             // NULL until it has been compiled
    struct run_state_candidate *candidate; // candidate number i is candidate[i - 1]
    size_t candidate_count;
    struct run_state_incumbent *incumbent; // in the order in which they were found
    size_t incumbent_count;
    struct run_certified certified; // the latest threshold; zeroed before the first
    size_t certifications;          // number of thresholds so far
    struct run_trusted *trust;      // what each forecaster has shown last; the latest event last
    size_t trust_count;             // forecasters
    uint64_t trust_events;          // how often trust has changed
    uint64_t trust_alarms;          // how often an alarm ended it
    struct run_screened screened[RUN_GENERATORS_MAX]; // the latest screening of each generator's
                                                      // points; zeroed before it
    struct run_looked_back looked; // the latest look back at trusted candidates; zeroed before it
    uint64_t looks;                // number of looks back so far
    uint64_t reconsidered;         // trusted candidates that a look back has had measured
    struct run_surveyed surveyed;  // the latest survey; zeroed before the first
    size_t surveys;                // number of surveys so far
    uint64_t searched;             // candidates before the first survey's audits; 0: no survey
    uint64_t drawn;                // of `draws`, those that were decided about
    uint64_t draws;                // audits that were drawn at this end
    uint64_t draw_population;      // from so many
    double draw_uniform;           // `uniform` of their survey
    struct run_play_off play_off;  // zeroed before it begins
    struct run_game *game;         // of all play-offs, in order
    size_t game_count;
    size_t first_game;                // index of the first one of the latest play-off
    double play_off_seconds;          // device seconds of its games
    struct run_played_off played_off; // zeroed before it has ended
    bool has_played_off;              // it has ended
    uint64_t considered;  // candidates proposed, duplicates included, those that go on in the stead
                          // of others not
    uint64_t compiled_ok; // candidates that compiled
    uint64_t compile_failed;   // candidates that did not compile
    uint64_t forecasts;        // forecasts that were made
    uint64_t proposals;        // candidates that language models wrote
    uint64_t known;            // of these, the ones whose source existed already
    struct run_state_ask *ask; // in order
    size_t ask_count;
    struct run_state_asking {
        bool over;                 // the generator brings nothing new any more; others go on
        uint64_t fruitless;        // its last rounds without a new candidate
        uint64_t fruitless_before; // the same when the last batch was proposed
        char *reason;              // the last sentence of whom it asks; NULL: none
    } asking[RUN_GENERATORS_MAX];
    struct run_asked *round; // answers for the batch that is not proposed yet, in order
    size_t round_count;
    struct run_state_waiting *waiting; // answers that are no candidates yet, in order; none without
                                       // RUN_RULE_WAITING
    size_t waiting_count;
    uint64_t orders;        // how often a language model said which proposals go first
    uint64_t input_tokens;  // tokens that language models read for the run
    uint64_t output_tokens; // tokens that language models wrote for the run
    double model_cost;      // price of these tokens in the worker's currency
    uint64_t measured;      // candidates that were measured; replications are not counted again
    uint64_t audited;       // candidates measured although their forecast was trusted
    uint64_t trusted;       // candidates whose forecast was trusted
    uint64_t reused;        // candidates with the object of an earlier one
    uint64_t records;       // replications
    double device_seconds;  // for which all measurements held a device
    double compile_seconds;
    double first_at;          // wall clock of the first event, seconds since 1970
    double last_at;           // wall clock of the last event
    uint64_t extensions;      // how often a resume has changed the limits
    uint64_t *extended_after; // candidates that there were at each of them; its batches end there
    bool finished;
    char *finish_reason;
    uint64_t last_sequence;           // number of the last event
    uint64_t observed_up_to;          // event up to which outcomes were told to the worker
    uint64_t observed_candidates;     // the worker was told the outcomes of candidates 1 … this
    double wall_seconds;              // time at work, all sessions together without the pauses
    double start_up_seconds;          // of these, from the beginning of a session to its record
    struct job_times *baseline_times; // as those of a candidate
    struct run_state_window *window;  // the time at work; in order, without gaps in wall_from
    size_t window_count;
    struct run_state_span *worker; // in the order of their ends
    size_t worker_count;
    struct run_state_device *device; // in the order of their first results
    size_t device_count;
    double asked_seconds; // for which language models were asked for candidates
    double session_at;    // wall clock at the beginning of the latest session
};

void run_state_init(struct run_state *run_state);
// The probability with which a candidate whose decision was made was to be measured, as far as it
// stands for others: 1 for a point that was proposed as an audit at the end, and for a decided one
// that was drawn then the probability of being among the audits, in so many independent draws. NaN
// when it is not known.
double run_state_propensity(const struct run_state *run_state,
                            const struct run_state_candidate *candidate);
// Frees what the state holds; it may be used again after that.
void run_state_release(struct run_state *run_state);
// Applies one event, whose body's parts it takes over. ERR_CORRUPT when the event does not follow
// from the events before; the state is then as it was.
MUST_CHECK int run_state_apply(struct run_state *run_state, struct run_event *event,
                               struct err *err);
// Applies all events of the file that were not applied yet.
MUST_CHECK int run_state_read(struct run_state *run_state, struct run *run, struct err *err);
// The log2 speedup of the incumbent over the baseline; 0 without an incumbent.
double run_state_incumbent_log2(const struct run_state *run_state);
// The same, as it was when only candidates 1 … last were known.
double run_state_incumbent_before(const struct run_state *run_state, uint64_t last);
// Whether there is an incumbent that is at least `target` times as fast as the baseline; false when
// that is NaN or 0, which is no target.
bool run_state_reached(const struct run_state *run_state, double target);
// What the forecaster has shown last; NULL when nothing was recorded of it.
const struct run_trusted *run_state_trust(const struct run_state *run_state,
                                          const char *forecaster);
// The device seconds that a result is charged; 0 for NULL and for an answer from a cache.
double run_state_held_seconds(const struct result *result);
// Whether the candidate was put off and another one goes on in its stead, which counts for both.
bool run_state_is_replaced(const struct run_state_candidate *candidate);
// The incumbent; NULL without one.
const struct run_state_candidate *run_state_best(const struct run_state *run_state);
// The incumbent among candidates 1 … last; NULL without one.
const struct run_state_candidate *run_state_best_before(const struct run_state *run_state,
                                                        uint64_t last);

#endif
