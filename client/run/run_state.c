// Builds the state of a run from its events.
//
// Every event is checked against those before it. Numbers of candidates are consecutive. A
// candidate is compiled before it is forecast and decided about, decided about before it is
// measured, and replicated before it becomes the incumbent. An event that does not follow is
// ERR_CORRUPT and leaves the state as it was. The state owns the parts of the events that it took
// over; nothing is ever removed from it.
#include "client/run/run_state.h"

#include "client/run/run_extend.h"
#include "client/run/run_state_asked.h"
#include "client/run/run_state_end.h"
#include "client/run/run_state_put_off.h"
#include "client/run/run_state_time.h"
#include "client/run/run_state_trust.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ID(event) ((unsigned long long)(event)->candidate)

void run_state_init(struct run_state *run_state)
{
    *run_state = (struct run_state){0};
}

static void free_message(const struct message *message, void *value)
{
    if (value) {
        message_clear(message, value);
        free(value);
    }
}

static void release_candidate(struct run_state_candidate *candidate)
{
    message_clear(&run_proposed_message, &candidate->proposed);
    message_clear(&run_decided_message, &candidate->decided);
    free_message(&compiled_message, candidate->compiled);
    free_message(&forecast_message, candidate->forecast);
    free_message(&result_message, candidate->result);
    free_message(&result_message, candidate->record);
    free_message(&job_times_message, candidate->compile_times);
    free_message(&job_times_message, candidate->measure_times);
    free_message(&job_times_message, candidate->record_times);
    free(candidate->forecast_reason);
}

void run_state_release(struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        release_candidate(&run_state->candidate[i]);
    }
    for (size_t i = 0; i < run_state->incumbent_count; i++) {
        message_clear(&run_incumbent_message, &run_state->incumbent[i].event);
    }
    run_state_release_trust(run_state);
    free(run_state->candidate);
    free(run_state->incumbent);
    free(run_state->ask);
    for (size_t i = 0; i < RUN_GENERATORS_MAX; i++) {
        free(run_state->asking[i].reason);
    }
    run_state_forget_rounds(run_state);
    run_state_release_waiting(run_state);
    free(run_state->round);
    message_clear(&run_started_message, &run_state->started);
    message_clear(&run_session_message, &run_state->session);
    message_clear(&run_certified_message, &run_state->certified);
    run_state_release_end(run_state);
    free_message(&compiled_message, run_state->baseline);
    free_message(&job_times_message, run_state->baseline_times);
    run_state_release_time(run_state);
    free(run_state->finish_reason);
    free(run_state->extended_after);
    *run_state = (struct run_state){0};
}

// Finds the candidate that an event is about.
static int find(const struct run_state *run_state, uint64_t id, struct run_state_candidate **ret,
                struct err *err)
{
    if (id == 0 || id > run_state->candidate_count) {
        return err_set(err, ERR_CORRUPT, "candidate %llu was never proposed",
                       (unsigned long long)id);
    }
    *ret = &run_state->candidate[id - 1];
    return 0;
}

static int apply_started(struct run_state *run_state, struct run_started *event, struct err *err)
{
    if (run_state->last_sequence != 0) {
        return err_set(err, ERR_CORRUPT, "the run starts twice");
    }
    run_state->started = *event;
    *event = (struct run_started){0};
    return 0;
}

static int apply_session(struct run_state *run_state, struct run_session *event, double at)
{
    message_clear(&run_session_message, &run_state->session);
    run_state->session = *event;
    *event = (struct run_session){0};
    run_state->sessions++;
    run_state->session_at = at;
    return 0;
}

static int apply_baseline(struct run_state *run_state, struct run_baseline *event, struct err *err)
{
    if (run_state->baseline) {
        return err_set(err, ERR_CORRUPT, "the baseline is compiled twice");
    }
    run_state->baseline = event->compiled;
    run_state->baseline_times = event->times;
    event->compiled = NULL;
    event->times = NULL;
    return 0;
}

static int apply_proposed(struct run_state *run_state, struct run_proposed *event, struct err *err)
{
    if (event->candidate != run_state->candidate_count + 1) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is proposed after candidate %zu",
                       ID(event), run_state->candidate_count);
    }
    if (event->duplicate_of >= event->candidate || event->parent >= event->candidate) {
        return err_set(err, ERR_CORRUPT, "candidate %llu refers to a later one", ID(event));
    }
    int rc = run_state_check_again(run_state, event, err);
    if (rc != 0) {
        return rc;
    }
    // The array has room for 2^k - 1 candidates and doubles when it is full.
    if ((run_state->candidate_count & (run_state->candidate_count + 1)) == 0) {
        run_state->candidate = xrealloc(run_state->candidate, 2 * run_state->candidate_count + 1,
                                        sizeof(*run_state->candidate));
    }
    run_state->candidate[run_state->candidate_count++] =
        (struct run_state_candidate){.proposed = *event};
    run_state_go_on(run_state);
    run_state_take_waiting(run_state, event);
    *event = (struct run_proposed){0};
    run_state_forget_rounds(run_state); // their batch is proposed
    return 0;
}

static int apply_compiled(struct run_state *run_state, struct run_compiled *event, struct err *err)
{
    struct run_state_candidate *candidate = NULL;
    int rc = find(run_state, event->candidate, &candidate, err);
    if (rc != 0) {
        return rc;
    }
    if (candidate->compiled || candidate->proposed.duplicate_of != 0 || candidate->put_off) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is compiled twice", ID(event));
    }
    if (event->duplicate_of >= event->candidate) {
        return err_set(err, ERR_CORRUPT, "candidate %llu has the object of a later one", ID(event));
    }
    candidate->compiled = event->compiled;
    candidate->object_duplicate_of = event->duplicate_of;
    candidate->compile_times = event->times;
    event->compiled = NULL;
    event->times = NULL;
    if (candidate->compiled->verdict == VERDICT_NONE) {
        run_state->compiled_ok++;
    } else {
        run_state->compile_failed++;
    }
    if (candidate->compiled->seconds > 0) { // false for NaN, which means that it is not known
        run_state->compile_seconds += candidate->compiled->seconds;
    }
    return 0;
}

// Finds a candidate that compiled, which decisions and measurements need.
static int find_compiled(const struct run_state *run_state, uint64_t id,
                         struct run_state_candidate **ret, struct err *err)
{
    int rc = find(run_state, id, ret, err);
    if (rc == 0 && (!(*ret)->compiled || (*ret)->compiled->verdict != VERDICT_NONE)) {
        rc = err_set(err, ERR_CORRUPT, "candidate %llu goes on without having compiled",
                     (unsigned long long)id);
    }
    return rc;
}

// Finds a candidate of which there is, or is known not to be, a forecast: one that compiled, that a
// screening has chosen, or of which the worker could say nothing when it was proposed.
static int find_forecast(const struct run_state *run_state, const struct run_forecast *event,
                         struct run_state_candidate **ret, struct err *err)
{
    bool ignorant = !event->forecast && (run_state->started.rules & RUN_RULE_IGNORANT);
    int rc = find(run_state, event->candidate, ret, err);
    return rc == 0 && (ignorant || (*ret)->proposed.screened > 0)
               ? 0
               : find_compiled(run_state, event->candidate, ret, err);
}

static int apply_forecast(struct run_state *run_state, struct run_forecast *event, double at,
                          struct err *err)
{
    struct run_state_candidate *candidate = NULL;
    int rc = find_forecast(run_state, event, &candidate, err);
    if (rc != 0) {
        return rc;
    }
    bool again = event->look > 0 && event->look == run_state->looks && event->forecast &&
                 candidate->decided.decision == DECISION_TRUST;
    if (!again && (candidate->forecast_done || candidate->decided.decision != 0)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is forecast twice or too late", ID(event));
    }
    run_state->forecasts -= again && candidate->forecast; // trusted, so it was counted
    free_message(&forecast_message, candidate->forecast);
    free(candidate->forecast_reason);
    candidate->forecast = event->forecast;
    candidate->forecast_reason = event->reason;
    candidate->forecast_done = true;
    run_state_add_worker(run_state, event->asked_at, at);
    run_state->forecasts += event->forecast && !isnan(event->forecast->p_improves);
    if (event->forecast) {
        run_state_add_tokens(run_state, event->forecast->input_tokens,
                             event->forecast->output_tokens, event->forecast->cost);
    }
    event->forecast = NULL;
    event->reason = NULL;
    return 0;
}

static int apply_decided(struct run_state *run_state, struct run_decided *event, struct err *err)
{
    struct run_state_candidate *candidate = NULL;
    int rc = find_compiled(run_state, event->candidate, &candidate, err);
    if (rc != 0) {
        return rc;
    }
    bool drawn = event->draw > 0 && event->decision == DECISION_AUDIT;
    bool trusted = candidate->decided.decision == DECISION_TRUST;
    bool again =
        event->look > 0 && event->look == run_state->looks && event->decision == DECISION_MEASURE;
    if (candidate->decided.decision != 0 && !((drawn || again) && trusted)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is decided twice", ID(event));
    }
    if (event->look > 0 && !(again && trusted)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is reconsidered without a look back",
                       ID(event));
    }
    if (event->draw > 0 && run_state->surveys == 0) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is drawn without a survey", ID(event));
    }
    switch (event->decision) {
    case DECISION_MEASURE:
        break;
    case DECISION_TRUST:
        run_state->trusted++;
        break;
    case DECISION_AUDIT:
        run_state->audited++;
        break;
    case DECISION_REUSE:
        run_state->reused++;
        break;
    default:
        return err_set(err, ERR_CORRUPT, "candidate %llu has an unknown decision", ID(event));
    }
    run_state->trusted -= trusted;
    run_state->drawn += drawn;
    run_state->reconsidered += again;
    message_clear(&run_decided_message, &candidate->decided);
    candidate->decided = *event;
    *event = (struct run_decided){0};
    return 0;
}

// Applies a first measurement or a replication. There is no result when the daemon gave the job up.
static int apply_measured(struct run_state *run_state, struct run_measured *event, struct err *err)
{
    struct run_state_candidate *candidate = NULL;
    int rc = find_compiled(run_state, event->candidate, &candidate, err);
    if (rc != 0) {
        return rc;
    }
    bool record = event->purpose == PURPOSE_RECORD;
    uint64_t decision = candidate->decided.decision;
    uint64_t purpose = decision == DECISION_AUDIT ? PURPOSE_AUDIT : PURPOSE_SEARCH;
    if ((decision != DECISION_MEASURE && decision != DECISION_AUDIT) ||
        (!record && event->purpose != purpose)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is measured without a decision to",
                       ID(event));
    }
    if (candidate->given_up || (record ? candidate->record : candidate->result) ||
        (record && !candidate->result)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is measured twice", ID(event));
    }
    struct result *result = event->result;
    event->result = NULL;
    *(record ? &candidate->record_times : &candidate->measure_times) = event->times;
    event->times = NULL;
    candidate->given_up = !result;
    if (!result) {
        return 0;
    }
    candidate->barred =
        candidate->barred || (result->unsealed && !run_state->started.accept_unsealed);
    if (record) {
        candidate->record = result;
        run_state->records++;
    } else {
        candidate->result = result;
        candidate->measured_order = ++run_state->measured;
        candidate->seconds_before = run_state->device_seconds;
    }
    run_state->device_seconds += run_state_held_seconds(result);
    run_state_add_run(run_state, event->pool, result);
    return 0;
}

static int apply_incumbent(struct run_state *run_state, struct run_incumbent *event, double at,
                           struct err *err)
{
    struct run_state_candidate *candidate = NULL;
    int rc = find_compiled(run_state, event->candidate, &candidate, err);
    if (rc != 0) {
        return rc;
    }
    if (!candidate->record) {
        return err_set(err, ERR_CORRUPT,
                       "candidate %llu becomes the incumbent without a replication", ID(event));
    }
    if (candidate->barred) {
        return err_set(err, ERR_CORRUPT,
                       "candidate %llu becomes the incumbent although it ran unsealed", ID(event));
    }
    run_state->incumbent = xrealloc(run_state->incumbent, run_state->incumbent_count + 1,
                                    sizeof(*run_state->incumbent));
    run_state->incumbent[run_state->incumbent_count++] =
        (struct run_state_incumbent){.event = *event, .at = at};
    *event = (struct run_incumbent){0};
    return 0;
}

static int apply_certified(struct run_state *run_state, struct run_certified *event,
                           struct err *err)
{
    if (event->after > run_state->candidate_count) {
        return err_set(err, ERR_CORRUPT, "a threshold rests on unknown candidates");
    }
    if (!isnan(event->threshold) && !(event->threshold >= 0 && event->threshold <= 1)) {
        return err_set(err, ERR_CORRUPT, "a threshold is no probability");
    }
    message_clear(&run_certified_message, &run_state->certified);
    run_state->certified = *event;
    run_state->certifications++;
    *event = (struct run_certified){0};
    return 0;
}

static int apply_finished(struct run_state *run_state, struct run_finished *event)
{
    run_state->finished = true;
    free(run_state->finish_reason);
    run_state->finish_reason = event->reason;
    event->reason = NULL;
    return 0;
}

static int apply_body(struct run_state *run_state, struct run_event *event, struct err *err)
{
    struct run_observed *observed;

    switch (event->kind) {
    case RUN_STARTED:
        return apply_started(run_state, event->body, err);
    case RUN_SESSION:
        return apply_session(run_state, event->body, event->at);
    case RUN_BASELINE:
        return apply_baseline(run_state, event->body, err);
    case RUN_PROPOSED:
        return apply_proposed(run_state, event->body, err);
    case RUN_COMPILED:
        return apply_compiled(run_state, event->body, err);
    case RUN_FORECAST:
        return apply_forecast(run_state, event->body, event->at, err);
    case RUN_DECIDED:
        return apply_decided(run_state, event->body, err);
    case RUN_MEASURED:
        return apply_measured(run_state, event->body, err);
    case RUN_INCUMBENT:
        return apply_incumbent(run_state, event->body, event->at, err);
    case RUN_OBSERVED:
        observed = event->body;
        if (observed->up_to_candidate > run_state->candidate_count) {
            return err_set(err, ERR_CORRUPT, "outcomes of unknown candidates were told");
        }
        run_state->observed_up_to = observed->up_to_event;
        run_state->observed_candidates = observed->up_to_candidate;
        run_state_add_worker(run_state, observed->told_at, event->at);
        return 0;
    case RUN_ASKED:
        return run_state_apply_asked(run_state, event->body, err);
    case RUN_CERTIFIED:
        return apply_certified(run_state, event->body, err);
    case RUN_TRUSTED:
        return run_state_apply_trusted(run_state, event->body, err);
    case RUN_LOOKED_BACK:
        return run_state_apply_looked_back(run_state, event->body, event->at, err);
    case RUN_SCREENED:
        return run_state_apply_screened(run_state, event->body, err);
    case RUN_PUT_OFF:
        return run_state_apply_put_off(run_state, event->body, err);
    case RUN_ORDERED:
        return run_state_apply_ordered(run_state, event->body, event->at, err);
    case RUN_SURVEYED:
    case RUN_PLAY_OFF:
    case RUN_GAME:
    case RUN_PLAYED_OFF:
        return run_state_apply_end(run_state, event, err);
    case RUN_FINISHED:
        return apply_finished(run_state, event->body);
    case RUN_EXTENDED:
        run_state_extend(run_state, event->body);
        return 0;
    }
    return err_set(err, ERR_CORRUPT, "unknown kind %d", (int)event->kind);
}

int run_state_apply(struct run_state *run_state, struct run_event *event, struct err *err)
{
    int rc = 0;
    if (event->sequence != run_state->last_sequence + 1) {
        rc = err_set(err, ERR_CORRUPT, "it comes after event %llu",
                     (unsigned long long)run_state->last_sequence);
    } else if (event->sequence == 1 && event->kind != RUN_STARTED) {
        rc = err_set(err, ERR_CORRUPT, "the run does not begin with its start");
    } else if (run_state->finished && event->kind != RUN_SESSION && event->kind != RUN_EXTENDED) {
        rc = err_set(err, ERR_CORRUPT, "the run goes on after its end");
    } else {
        rc = apply_body(run_state, event, err);
    }
    if (rc != 0) {
        err_wrap(err, "event %llu (%s)", (unsigned long long)event->sequence,
                 run_event_name(event->kind));
        return rc;
    }
    run_state_add_time(run_state, event->kind, event->at);
    if (run_state->last_sequence == 0) {
        run_state->first_at = event->at;
    }
    run_state->last_at = event->at;
    run_state->last_sequence = event->sequence;
    return 0;
}

static int visit(void *owner, struct run_event *event, struct err *err)
{
    return run_state_apply(owner, event, err);
}

int run_state_read(struct run_state *run_state, struct run *run, struct err *err)
{
    return run_replay(run, run_state->last_sequence, visit, run_state, err);
}

double run_state_held_seconds(const struct result *result)
{
    bool charged = result && !result->cached && result->seconds && result->seconds->held > 0;
    return charged ? result->seconds->held : 0;
}
