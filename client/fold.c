// State of a run from its events.
//
// Every event is checked against what came before: ids are consecutive, a candidate is compiled
// before it is forecast and decided, decided before it is measured, replicated before it becomes
// the incumbent. What does not follow is ERR_CORRUPT and leaves the fold as it was. The fold owns
// the insides of the events it took; nothing is ever taken back.
#include "client/fold.h"
#include <math.h>

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

#define ID(event) ((unsigned long long)(event)->candidate)

void fold_init(struct fold *fold)
{
    *fold = (struct fold){0};
}

static void free_message(const struct message *message, void *value)
{
    if (value != NULL) {
        message_clear(message, value);
        free(value);
    }
}

static void release_candidate(struct fold_candidate *candidate)
{
    message_clear(&run_proposed_message, &candidate->proposed);
    message_clear(&run_decided_message, &candidate->decided);
    free_message(&compiled_message, candidate->compiled);
    free_message(&forecast_message, candidate->forecast);
    free_message(&result_message, candidate->result);
    free_message(&result_message, candidate->record);
    free(candidate->forecast_reason);
}

void fold_release(struct fold *fold)
{
    for (size_t i = 0; i < fold->candidate_count; i++) {
        release_candidate(&fold->candidate[i]);
    }
    for (size_t i = 0; i < fold->incumbent_count; i++) {
        message_clear(&run_incumbent_message, &fold->incumbent[i].event);
    }
    free(fold->candidate);
    free(fold->incumbent);
    free(fold->ask);
    free(fold->asking_over_reason);
    message_clear(&run_started_message, &fold->started);
    message_clear(&run_session_message, &fold->session);
    message_clear(&run_certified_message, &fold->certified);
    free_message(&compiled_message, fold->baseline);
    free(fold->finish_reason);
    *fold = (struct fold){0};
}

// The candidate an event speaks of.
static int find(const struct fold *fold, uint64_t id, struct fold_candidate **ret, struct err *err)
{
    if (id == 0 || id > fold->candidate_count) {
        return err_set(err, ERR_CORRUPT, "candidate %llu was never proposed",
                       (unsigned long long)id);
    }
    *ret = &fold->candidate[id - 1];
    return 0;
}

static int apply_started(struct fold *fold, struct run_started *event, struct err *err)
{
    if (fold->last_sequence != 0) {
        return err_set(err, ERR_CORRUPT, "the run starts twice");
    }
    fold->started = *event;
    *event = (struct run_started){0};
    return 0;
}

static int apply_session(struct fold *fold, struct run_session *event, double at)
{
    message_clear(&run_session_message, &fold->session);
    fold->session = *event;
    *event = (struct run_session){0};
    fold->sessions++;
    fold->session_at = at;
    return 0;
}

static int apply_baseline(struct fold *fold, struct run_baseline *event, struct err *err)
{
    if (fold->baseline != NULL) {
        return err_set(err, ERR_CORRUPT, "the baseline is compiled twice");
    }
    fold->baseline = event->compiled;
    event->compiled = NULL;
    return 0;
}

static int apply_proposed(struct fold *fold, struct run_proposed *event, struct err *err)
{
    if (event->candidate != fold->candidate_count + 1) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is proposed after candidate %zu",
                       ID(event), fold->candidate_count);
    }
    if (event->duplicate_of >= event->candidate || event->parent >= event->candidate) {
        return err_set(err, ERR_CORRUPT, "candidate %llu refers to a later one", ID(event));
    }
    if ((fold->candidate_count & (fold->candidate_count + 1)) == 0) { // 0, 1, 3, 7 …: doubles
        fold->candidate =
            xrealloc(fold->candidate, 2 * fold->candidate_count + 1, sizeof(*fold->candidate));
    }
    fold->candidate[fold->candidate_count++] = (struct fold_candidate){.proposed = *event};
    fold->considered += event->duplicate_of == 0;
    *event = (struct run_proposed){0};
    return 0;
}

static int apply_compiled(struct fold *fold, struct run_compiled *event, struct err *err)
{
    struct fold_candidate *candidate = NULL;
    int code = find(fold, event->candidate, &candidate, err);
    if (code != 0) {
        return code;
    }
    if (candidate->compiled != NULL || candidate->proposed.duplicate_of != 0) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is compiled twice", ID(event));
    }
    if (event->duplicate_of >= event->candidate) {
        return err_set(err, ERR_CORRUPT, "candidate %llu has the object of a later one", ID(event));
    }
    candidate->compiled = event->compiled;
    candidate->object_duplicate_of = event->duplicate_of;
    event->compiled = NULL;
    if (candidate->compiled->verdict == VERDICT_NONE) {
        fold->compiled_ok++;
    } else {
        fold->compile_failed++;
    }
    if (candidate->compiled->seconds > 0) { // not for NaN, which is "absent"
        fold->compile_seconds += candidate->compiled->seconds;
    }
    return 0;
}

// Forecast, decided and measured need a candidate that compiled.
static int find_compiled(const struct fold *fold, uint64_t id, struct fold_candidate **ret,
                         struct err *err)
{
    int code = find(fold, id, ret, err);
    if (code == 0 && ((*ret)->compiled == NULL || (*ret)->compiled->verdict != VERDICT_NONE)) {
        code = err_set(err, ERR_CORRUPT, "candidate %llu goes on without having compiled",
                       (unsigned long long)id);
    }
    return code;
}

static void add_tokens(struct fold *fold, uint64_t input, uint64_t output, double cost)
{
    fold->input_tokens += input;
    fold->output_tokens += output;
    fold->model_cost += isnan(cost) ? 0 : cost;
}

// The account of the batch that is being asked for. One that begins again after a resume gets the
// same answers again.
static struct fold_ask *ask_of(struct fold *fold, const struct run_asked *event)
{
    uint64_t first = fold->candidate_count + 1;
    if (fold->ask_count == 0 || fold->ask[fold->ask_count - 1].first != first) {
        fold->ask = xrealloc(fold->ask, fold->ask_count + 1, sizeof(*fold->ask));
        fold->ask[fold->ask_count++] = (struct fold_ask){0};
    }
    struct fold_ask *ask = &fold->ask[fold->ask_count - 1];
    if (ask->first != first || event->round == 1) {
        *ask = (struct fold_ask){.first = first, .generator = event->generator};
    }
    return ask;
}

static void apply_asked(struct fold *fold, struct run_asked *event)
{
    struct fold_ask *ask = ask_of(fold, event);
    bool said = event->round > 0; // not in files of before there was more than one generator
    ask->tokens += said ? event->first_tokens : event->input_tokens + event->output_tokens;
    double cost = said ? event->first_cost : event->cost;
    ask->cost += isnan(cost) ? 0 : cost;
    if (event->over) {
        fold->asking_over = true;
        free(fold->asking_over_reason);
        fold->asking_over_reason = event->reason;
        event->reason = NULL;
    }
    fold->proposals += event->got;
    fold->known += event->known;
    add_tokens(fold, event->input_tokens, event->output_tokens, event->cost);
}

static int apply_forecast(struct fold *fold, struct run_forecast *event, struct err *err)
{
    struct fold_candidate *candidate = NULL;
    int code = find_compiled(fold, event->candidate, &candidate, err);
    if (code != 0) {
        return code;
    }
    if (candidate->forecast_done || candidate->decided.decision != 0) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is forecast twice or too late", ID(event));
    }
    candidate->forecast = event->forecast;
    candidate->forecast_reason = event->reason;
    candidate->forecast_done = true;
    fold->forecasts += event->forecast != NULL && !isnan(event->forecast->p_improves);
    if (event->forecast != NULL) {
        add_tokens(fold, event->forecast->input_tokens, event->forecast->output_tokens,
                   event->forecast->cost);
    }
    event->forecast = NULL;
    event->reason = NULL;
    return 0;
}

static int apply_decided(struct fold *fold, struct run_decided *event, struct err *err)
{
    struct fold_candidate *candidate = NULL;
    int code = find_compiled(fold, event->candidate, &candidate, err);
    if (code != 0) {
        return code;
    }
    if (candidate->decided.decision != 0) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is decided twice", ID(event));
    }
    switch (event->decision) {
    case DECISION_MEASURE:
        break;
    case DECISION_TRUST:
        fold->trusted++;
        break;
    case DECISION_AUDIT:
        fold->audited++;
        break;
    case DECISION_REUSE:
        fold->reused++;
        break;
    default:
        return err_set(err, ERR_CORRUPT, "candidate %llu has an unknown decision", ID(event));
    }
    candidate->decided = *event;
    *event = (struct run_decided){0};
    return 0;
}

// A first measurement or a replication. A daemon may give a job up; then there is no result.
static int apply_measured(struct fold *fold, struct run_measured *event, struct err *err)
{
    struct fold_candidate *candidate = NULL;
    int code = find_compiled(fold, event->candidate, &candidate, err);
    if (code != 0) {
        return code;
    }
    bool record = event->purpose == PURPOSE_RECORD;
    uint64_t decision = candidate->decided.decision;
    uint64_t purpose = decision == DECISION_AUDIT ? PURPOSE_AUDIT : PURPOSE_SEARCH;
    if ((decision != DECISION_MEASURE && decision != DECISION_AUDIT) ||
        (!record && event->purpose != purpose)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is measured without a decision to",
                       ID(event));
    }
    if (candidate->given_up || (record ? candidate->record : candidate->result) != NULL ||
        (record && candidate->result == NULL)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is measured twice", ID(event));
    }
    struct result *result = event->result;
    event->result = NULL;
    candidate->given_up = result == NULL;
    if (result == NULL) {
        return 0;
    }
    if (record) {
        candidate->record = result;
        fold->records++;
    } else {
        candidate->result = result;
        candidate->measured_order = ++fold->measured;
        candidate->seconds_before = fold->device_seconds;
    }
    fold->device_seconds += fold_held_seconds(result);
    return 0;
}

static int apply_incumbent(struct fold *fold, struct run_incumbent *event, double at,
                           struct err *err)
{
    struct fold_candidate *candidate = NULL;
    int code = find_compiled(fold, event->candidate, &candidate, err);
    if (code != 0) {
        return code;
    }
    if (candidate->record == NULL) {
        return err_set(err, ERR_CORRUPT,
                       "candidate %llu becomes the incumbent without a replication", ID(event));
    }
    fold->incumbent =
        xrealloc(fold->incumbent, fold->incumbent_count + 1, sizeof(*fold->incumbent));
    fold->incumbent[fold->incumbent_count++] = (struct fold_incumbent){.event = *event, .at = at};
    *event = (struct run_incumbent){0};
    return 0;
}

static int apply_certified(struct fold *fold, struct run_certified *event, struct err *err)
{
    if (event->after > fold->candidate_count) {
        return err_set(err, ERR_CORRUPT, "a threshold rests on unknown candidates");
    }
    if (!isnan(event->threshold) && !(event->threshold >= 0 && event->threshold <= 1)) {
        return err_set(err, ERR_CORRUPT, "a threshold is no probability");
    }
    message_clear(&run_certified_message, &fold->certified);
    fold->certified = *event;
    fold->certifications++;
    *event = (struct run_certified){0};
    return 0;
}

static int apply_finished(struct fold *fold, struct run_finished *event)
{
    fold->finished = true;
    free(fold->finish_reason);
    fold->finish_reason = event->reason;
    event->reason = NULL;
    return 0;
}

static int apply_body(struct fold *fold, struct run_event *event, struct err *err)
{
    struct run_observed *observed;

    switch (event->kind) {
    case RUN_STARTED:
        return apply_started(fold, event->body, err);
    case RUN_SESSION:
        return apply_session(fold, event->body, event->at);
    case RUN_BASELINE:
        return apply_baseline(fold, event->body, err);
    case RUN_PROPOSED:
        return apply_proposed(fold, event->body, err);
    case RUN_COMPILED:
        return apply_compiled(fold, event->body, err);
    case RUN_FORECAST:
        return apply_forecast(fold, event->body, err);
    case RUN_DECIDED:
        return apply_decided(fold, event->body, err);
    case RUN_MEASURED:
        return apply_measured(fold, event->body, err);
    case RUN_INCUMBENT:
        return apply_incumbent(fold, event->body, event->at, err);
    case RUN_OBSERVED:
        observed = event->body;
        if (observed->up_to_candidate > fold->candidate_count) {
            return err_set(err, ERR_CORRUPT, "outcomes of unknown candidates were told");
        }
        fold->observed_up_to = observed->up_to_event;
        fold->observed_candidates = observed->up_to_candidate;
        return 0;
    case RUN_ASKED:
        apply_asked(fold, event->body);
        return 0;
    case RUN_CERTIFIED:
        return apply_certified(fold, event->body, err);
    case RUN_FINISHED:
        return apply_finished(fold, event->body);
    }
    return err_set(err, ERR_CORRUPT, "unknown kind %d", (int)event->kind);
}

int fold_apply(struct fold *fold, struct run_event *event, struct err *err)
{
    int code = 0;
    if (event->sequence != fold->last_sequence + 1) {
        code = err_set(err, ERR_CORRUPT, "it comes after event %llu",
                       (unsigned long long)fold->last_sequence);
    } else if (event->sequence == 1 && event->kind != RUN_STARTED) {
        code = err_set(err, ERR_CORRUPT, "the run does not begin with its start");
    } else if (fold->finished && event->kind != RUN_SESSION) {
        code = err_set(err, ERR_CORRUPT, "the run goes on after its end");
    } else {
        code = apply_body(fold, event, err);
    }
    if (code != 0) {
        err_wrap(err, "event %llu (%s)", (unsigned long long)event->sequence,
                 run_event_name(event->kind));
        return code;
    }
    // Pauses between sessions are not work; clocks that jump back do not count either.
    if (event->kind != RUN_SESSION && fold->last_sequence != 0 && event->at > fold->last_at) {
        fold->wall_seconds += event->at - fold->last_at;
    }
    if (fold->last_sequence == 0) {
        fold->first_at = event->at;
    }
    fold->last_at = event->at;
    fold->last_sequence = event->sequence;
    return 0;
}

static int visit(void *owner, struct run_event *event, struct err *err)
{
    return fold_apply(owner, event, err);
}

int fold_run(struct fold *fold, struct run *run, struct err *err)
{
    return run_replay(run, fold->last_sequence, visit, fold, err);
}

double fold_incumbent_log2(const struct fold *fold)
{
    return fold->incumbent_count == 0
               ? 0
               : fold->incumbent[fold->incumbent_count - 1].event.speedup->log2;
}

static const struct run_incumbent *incumbent_before(const struct fold *fold, uint64_t last)
{
    for (size_t i = fold->incumbent_count; i > 0; i--) {
        if (fold->incumbent[i - 1].event.candidate <= last) {
            return &fold->incumbent[i - 1].event;
        }
    }
    return NULL;
}

double fold_incumbent_before(const struct fold *fold, uint64_t last)
{
    const struct run_incumbent *incumbent = incumbent_before(fold, last);
    return incumbent != NULL ? incumbent->speedup->log2 : 0;
}

const struct fold_candidate *fold_best_before(const struct fold *fold, uint64_t last)
{
    const struct run_incumbent *incumbent = incumbent_before(fold, last);
    return incumbent != NULL ? &fold->candidate[incumbent->candidate - 1] : NULL;
}

double fold_held_seconds(const struct result *result)
{
    bool charged =
        result != NULL && !result->cached && result->seconds != NULL && result->seconds->held > 0;
    return charged ? result->seconds->held : 0;
}

const struct fold_candidate *fold_best(const struct fold *fold)
{
    return fold->incumbent_count == 0
               ? NULL
               : &fold->candidate[fold->incumbent[fold->incumbent_count - 1].event.candidate - 1];
}
