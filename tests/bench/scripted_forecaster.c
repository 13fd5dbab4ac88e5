#include "tests/bench/scripted_forecaster.h"

#include "client/forecast/forecast_request.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/bins.h"
#include "replay/sim_worker.h"
#include "worker/model/group.h"
#include "worker/outcomes/history.h"
#include "worker/outcomes/outcome.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OBSERVE_MAX 256
#define ERROR_GOOD 0.15 // standard deviations of what is said, in log2
#define ERROR_NOISY 0.8
#define CONSTANT_LOG2 (-2.3) // "0.2 times"
#define CERTAIN 0.98
#define LIKELY 0.7

const char *const script_name[SCRIPTS] = {"good",
                                          "exact",
                                          "noisy",
                                          "two bins fast",
                                          "two bins slow",
                                          "adversary",
                                          "constant",
                                          "noise",
                                          "good, then adversary",
                                          "good, then noise",
                                          "good, then constant"};
const char *const script_engine_name[SCRIPT_ENGINES] = {"llm", "both", "static"};

struct scripted_forecaster {
    struct forecast_service service;
    const struct recorded_space *recorded;
    enum script_engine engine;
    struct history *history;
    struct group *group; // of the engines that learn from features; NULL before the first question
    double lowest, highest; // log2 speedups of the space
    struct sim *sim;
    enum script script;
    char *model;
    uint64_t seed, answers;
    struct forecast_reply reply;
    bool replies;
    forecast_service_callback *callback;
    forecast_service_told *told;
    void *owner;
    uint64_t rows;
};

static struct scripted_forecaster *forecaster_of(struct forecast_service *service)
{
    return (struct scripted_forecaster *)((uintptr_t)service -
                                          offsetof(struct scripted_forecaster, service));
}

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "scripted forecaster: %s: %s\n", what, err->text);
    abort();
}

// ---- what is said ----

// The script at this answer.
static enum script script_now(const struct scripted_forecaster *f)
{
    bool changed = f->answers >= SCRIPT_DRIFT;
    switch (f->script) {
    case SCRIPT_TO_ADVERSARY:
        return changed ? SCRIPT_ADVERSARY : SCRIPT_GOOD;
    case SCRIPT_TO_NOISE:
        return changed ? SCRIPT_NOISE : SCRIPT_GOOD;
    case SCRIPT_TO_CONSTANT:
        return changed ? SCRIPT_CONSTANT : SCRIPT_GOOD;
    default:
        return f->script;
    }
}

static size_t bin_beside(size_t bin, int by)
{
    int at = (int)bin + by;
    return at < 0 ? 0 : at >= BIN_COUNT ? BIN_COUNT - 1 : (size_t)at;
}

// The bin that is called the likeliest. truth: NaN when the candidate is not correct.
static size_t bin_said(const struct scripted_forecaster *f, enum script script, double truth,
                       struct stats_rng *rng)
{
    double error = stats_rng_normal(rng), known = isnan(truth) ? f->lowest : truth;
    switch (script) {
    case SCRIPT_GOOD:
        return bin_of(known + ERROR_GOOD * error);
    case SCRIPT_NOISY:
        return bin_of(known + ERROR_NOISY * error);
    case SCRIPT_FAST:
        return bin_beside(bin_of(known), 2);
    case SCRIPT_SLOW:
        return bin_beside(bin_of(known), -2);
    case SCRIPT_ADVERSARY:
        return bin_of(f->lowest + f->highest - known);
    case SCRIPT_CONSTANT:
        return bin_of(CONSTANT_LOG2);
    case SCRIPT_NOISE:
        return (size_t)stats_rng_below(rng, BIN_COUNT);
    default: // SCRIPT_EXACT
        return bin_of(known);
    }
}

// Fills what the model says of one candidate.
static struct raw_forecast *raw_of(struct scripted_forecaster *f,
                                   const struct candidate_facts *facts)
{
    enum script script = script_now(f);
    const struct space_candidate *found = recorded_space_find(f->recorded, &facts->digest);
    double truth = found ? space_log2(found) : NAN;
    struct stats_rng rng;
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&facts->digest, hex);
    stats_rng_init(&rng, stats_hash_text(f->seed, hex), f->answers);
    bool certain = script == SCRIPT_EXACT || script == SCRIPT_SLOW || script == SCRIPT_CONSTANT;
    double top = certain ? CERTAIN : LIKELY;
    size_t said = bin_said(f, script, truth, &rng);
    struct raw_forecast *raw = xmalloc(sizeof(*raw));
    message_init(&raw_forecast_message, raw);
    raw->model = xstrdup(f->model);
    raw->bins = xcalloc(BIN_COUNT, sizeof(*raw->bins));
    raw->bins_count = BIN_COUNT;
    raw->bins[said] += top;
    raw->bins[bin_beside(said, -1)] += (1 - top) / 2;
    raw->bins[bin_beside(said, 1)] += (1 - top) / 2;
    bool knows = script == SCRIPT_GOOD || script == SCRIPT_EXACT;
    raw->p_correct = !knows ? 0.9 : isnan(truth) ? 0.1 : 0.95;
    f->answers++;
    return raw;
}

// ---- asking ----

static void on_asked(void *owner, uint64_t tag)
{
    struct scripted_forecaster *f = owner;
    bool replies = f->replies;
    struct forecast_reply reply = f->reply;
    (void)tag;
    f->service.busy = f->replies = false;
    f->callback(f->owner, replies ? &reply : NULL, replies ? NULL : "it does not screen");
    if (replies) {
        message_clear(&forecast_reply_message, &reply);
    }
}

// As engine llm: the raw forecast, recalibrated.
static void forecast_llm(struct scripted_forecaster *f, const struct forecast_request *request,
                         struct forecast_reply *ret)
{
    ret->forecasts_count = request->candidates_count;
    ret->forecasts = xcalloc(ret->forecasts_count + 1, sizeof(*ret->forecasts));
    for (size_t i = 0; i < ret->forecasts_count; i++) {
        struct forecast *forecast = &ret->forecasts[i];
        message_init(&forecast_message, forecast);
        forecast->id = request->candidates[i].id;
        forecast->raw = raw_of(f, &request->candidates[i]);
        history_recalibrate(f->history, request, forecast);
    }
}

// As engine both: the static model's forecast with the raw one among its features, where it has
// learnt something.
static void forecast_both(struct scripted_forecaster *f, struct forecast_request *request,
                          struct forecast_reply *llm)
{
    struct forecast_reply trained;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < request->candidates_count; i++) {
        request->candidates[i].raw = llm->forecasts[i].raw; // borrowed
    }
    group_use(f->group, request->screening);
    if (group_fit(f->group, request->screening, &err) != 0 ||
        group_forecast(f->group, request, &trained, &err) != 0) {
        fail("the static model", &err);
    }
    for (size_t i = 0; i < request->candidates_count; i++) {
        request->candidates[i].raw = NULL;
        if (trained.forecasts[i].trained_rows > 0) {
            struct forecast had = llm->forecasts[i];
            llm->forecasts[i] = trained.forecasts[i];
            llm->forecasts[i].raw = had.raw;
            had.raw = NULL;
            message_clear(&forecast_message, &had);
            trained.forecasts[i] = (struct forecast){0};
        }
    }
    message_clear(&forecast_reply_message, &trained);
}

static void demand_group(struct scripted_forecaster *f, const struct run_state *run_state)
{
    if (!f->group && f->engine != SCRIPT_LLM) {
        f->group = group_create(run_state->started.problem, run_state->session.device_class);
    }
}

static void make_reply(struct scripted_forecaster *f, struct forecast_request *request)
{
    struct err err = ERR_INIT;
    message_init(&forecast_reply_message, &f->reply);
    if (f->engine != SCRIPT_STATIC) {
        forecast_llm(f, request, &f->reply);
    }
    if (f->engine == SCRIPT_BOTH) {
        forecast_both(f, request, &f->reply);
    }
    if (f->engine == SCRIPT_STATIC) {
        group_use(f->group, request->screening);
        if (group_fit(f->group, request->screening, &err) != 0 ||
            group_forecast(f->group, request, &f->reply, &err) != 0) {
            fail("the static model", &err);
        }
    }
    for (size_t i = 0; i < f->reply.forecasts_count; i++) {
        free(f->reply.forecasts[i].engine);
        f->reply.forecasts[i].engine = xstrdup(script_engine_name[f->engine]);
    }
}

static void begin_answer(struct scripted_forecaster *f, bool replies,
                         forecast_service_callback *callback, void *owner)
{
    f->service.busy = true;
    f->replies = replies;
    f->callback = callback;
    f->owner = owner;
    sim_after(f->sim, SIM_WORKER_FORECAST_S, on_asked, f, 0);
}

static void ask(struct forecast_service *service, const struct run_state *run_state, uint64_t first,
                uint64_t last, uint64_t visible, forecast_service_callback *callback, void *owner)
{
    struct scripted_forecaster *f = forecaster_of(service);
    struct forecast_request request;
    demand_group(f, run_state);
    forecast_questions(run_state, first, last, visible, &request);
    make_reply(f, &request);
    forecast_questions_free(&request);
    begin_answer(f, true, callback, owner);
}

// As the engines: the static model knows candidates by their parameters, the others refuse to.
static void screen(struct forecast_service *service, const struct run_state *run_state,
                   struct candidate_facts *facts, size_t count, uint64_t visible,
                   const double *beyond_log2, size_t margins, forecast_service_callback *callback,
                   void *owner)
{
    struct scripted_forecaster *f = forecaster_of(service);
    struct forecast_request request;
    bool screens = f->engine == SCRIPT_STATIC;
    demand_group(f, run_state);
    if (screens) {
        forecast_screening(run_state, facts, count, visible, &request);
        request.beyond_log2 = (double *)(uintptr_t)beyond_log2; // the request is not cleared
        request.beyond_log2_count = margins;
        make_reply(f, &request);
    }
    begin_answer(f, screens, callback, owner);
}

// ---- telling ----

static void on_told(void *owner, uint64_t tag)
{
    struct scripted_forecaster *f = owner;
    (void)tag;
    f->service.busy = false;
    f->told(f->owner, true, f->rows);
}

static void learn_features(struct scripted_forecaster *f, struct observe *observe)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        struct outcome *outcome = &observe->outcomes[i];
        if (outcome_is_usable(outcome)) {
            outcome->candidate->raw = outcome->raw; // borrowed
            group_add(f->group, observe, outcome);
            outcome->candidate->raw = NULL;
        }
    }
}

static void tell(struct forecast_service *service, const struct run_state *run_state,
                 uint64_t after, uint64_t last, forecast_service_told *callback, void *owner)
{
    struct scripted_forecaster *f = forecaster_of(service);
    uint64_t next = after + 1;
    f->service.busy = true;
    f->told = callback;
    f->owner = owner;
    demand_group(f, run_state);
    while (next <= last) {
        struct observe observe;
        struct observed observed;
        struct err err = ERR_INIT;
        forecast_outcomes(run_state, &next, last, OBSERVE_MAX, &observe);
        if (observe.outcomes_count > 0 && history_add(f->history, &observe, &observed, &err) != 0) {
            fail("the history", &err);
        }
        if (f->group) {
            learn_features(f, &observe);
        }
        f->rows = observe.outcomes_count > 0 ? observed.rows : f->rows;
        forecast_outcomes_free(&observe);
    }
    sim_after(f->sim, SIM_WORKER_OBSERVE_S, on_told, f, 0);
}

// ---- one forecaster ----

struct scripted_forecaster *scripted_forecaster_create(const struct recorded_space *recorded,
                                                       enum script_engine engine)
{
    struct scripted_forecaster *f = xcalloc(1, sizeof(*f));
    const struct space *space = recorded_space_data(recorded);
    struct err err = ERR_INIT;
    f->service = (struct forecast_service){.ask = ask, .screen = screen, .tell = tell};
    f->recorded = recorded;
    f->engine = engine;
    f->lowest = f->highest = recorded_space_best_log2(recorded);
    for (size_t i = 0; i < space->head.candidates; i++) {
        f->lowest = fmin(f->lowest, space_log2(&space->candidate[i])); // fmin passes NaN over
    }
    if (history_open(&f->history, ":memory:", &err) != 0) { // SQLite keeps it in memory
        fail("the history", &err);
    }
    return f;
}

void scripted_forecaster_free(struct scripted_forecaster *forecaster)
{
    if (!forecaster) {
        return;
    }
    if (forecaster->replies) {
        message_clear(&forecast_reply_message, &forecaster->reply);
    }
    history_close(forecaster->history);
    group_free(forecaster->group);
    free(forecaster->model);
    free(forecaster);
}

void scripted_forecaster_begin(struct scripted_forecaster *forecaster, struct sim *sim,
                               enum script script, const char *model, uint64_t seed)
{
    forecaster->sim = sim;
    forecaster->script = script;
    free(forecaster->model);
    forecaster->model = xstrdup(model);
    forecaster->seed = seed;
    forecaster->answers = 0;
}

struct forecast_service *scripted_forecaster_service(struct scripted_forecaster *forecaster)
{
    return &forecaster->service;
}
