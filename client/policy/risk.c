// Each decided candidate becomes a certify_row and goes to one of two learners: calibrate() keeps
// the rows of the calibration phase for recall and selective, and bet() feeds the online test. A
// row is taken in only when its outcome is known, and rows are never taken out of order, so the
// state depends on the run's events alone.
#include "client/policy/risk.h"

#include "client/policy/policy.h"
#include "client/propose/generator_list.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64 // how many of the latest scores thresholds are chosen from

struct risk {
    enum { RECALL, SELECTIVE, ONLINE } method;
    double alpha, delta, audit;
    bool by_parent;            // children of one parent are one cluster
    uint64_t taken;            // number of the last candidate that was taken in
    char *engine;              // that forecast the rows so far; NULL: there are none; owned
    struct risk_counts counts; // since the search began

    // For recall and selective.
    struct certify_row *row;  // of the calibration phase; owned
    size_t rows, capacity;    // used and allocated
    size_t look;              // selective tests when there are this many rows
    size_t looked;            // tests so far
    struct certificate found; // by the latest test

    // For online.
    double score[WINDOW];         // the latest scores; score number i is at i % WINDOW
    size_t scores;                // since the engine last changed
    bool betting;                 // thresholds have been chosen
    struct certify_online online; // valid while betting
};

int risk_check(const char *guarantee, double audit, struct err *err)
{
    return audit > 0 || strcmp(guarantee, "online") != 0
               ? 0
               : err_set(err, ERR_USAGE,
                         "--guarantee online learns from audits and there are none; give --audit "
                         "above 0, or another --guarantee");
}

struct risk *risk_create(const struct run_started *started)
{
    const char *name = started->guarantee ? started->guarantee : RISK_GUARANTEE_DEFAULT;
    struct risk *risk = xcalloc(1, sizeof(*risk));
    risk->method = strcmp(name, "recall") == 0      ? RECALL
                   : strcmp(name, "selective") == 0 ? SELECTIVE
                                                    : ONLINE;
    risk->alpha = started->alpha;
    risk->delta = started->delta;
    risk->audit = started->audit;
    risk->by_parent = generator_list_asks(started->generator);
    return risk;
}

void risk_free(struct risk *risk)
{
    if (risk) {
        free(risk->engine);
        free(risk->row);
        free(risk);
    }
}

double risk_score(const struct forecast *forecast)
{
    return policy_usable(forecast) && forecast->trained_rows > 0 ? fmin(forecast->p_improves, 0.5)
                                                                 : NAN;
}

// ---- recall, selective ----

// How many rows the first test waits for: half as many again as a test without an improver needs
// below the threshold, at half of delta.
static size_t first_look(double alpha, double delta)
{
    double need = 1.5 * log(delta / 2) / log1p(-alpha);
    return isfinite(need) && need < 1e9 ? (size_t)ceil(need) : SIZE_MAX / 4;
}

static void keep(struct risk *risk, const struct certify_row *row)
{
    if (risk->rows == risk->capacity) {
        risk->capacity = 2 * risk->capacity + 32;
        risk->row = xrealloc(risk->row, risk->capacity, sizeof(*risk->row));
    }
    risk->row[risk->rows++] = *row;
}

static void calibrate(struct risk *risk, const struct certify_row *row)
{
    if (risk->method == RECALL) {
        if (row->improves) { // other rows do not count for recall
            keep(risk, row);
            risk->found = certify_recall(risk->row, risk->rows, risk->alpha);
        }
        return;
    }
    keep(risk, row);
    if (risk->look == 0) {
        risk->look = first_look(risk->alpha, risk->delta);
    }
    if (risk->rows == risk->look) {
        double number = (double)++risk->looked;
        risk->found = certify_selective(risk->row, risk->rows, risk->alpha,
                                        risk->delta / (number * (number + 1)));
        risk->look *= 2;
    }
}

// ---- online ----

// Chooses thresholds just above quantiles of the latest scores. Where many scores are equal, as
// those of language models are, a threshold at the lowest score would have no row below it, and
// nothing could ever be certified.
static size_t latest_grid(const struct risk *risk, double grid[CERTIFY_GRID_MAX])
{
    double above[WINDOW];
    size_t len = risk->scores < WINDOW ? risk->scores : WINDOW;
    for (size_t i = 0; i < len; i++) {
        above[i] = fmin(nextafter(risk->score[i], 1), 0.5);
    }
    return certify_grid(above, len, grid);
}

static void bet(struct risk *risk, const struct certify_row *row, double smallest)
{
    bool alarm = risk->betting && certify_online_add(&risk->online, row, smallest);
    // Thresholds are chosen from scores of rows that the new test does not bet on.
    risk->score[risk->scores++ % WINDOW] = row->score;
    double grid[CERTIFY_GRID_MAX];
    if (alarm) {
        risk->counts.alarms++;
        size_t len = latest_grid(risk, grid);
        certify_online_restart(&risk->online, grid, len);
    }
    if (!risk->betting && risk->scores >= RISK_SCORES) {
        size_t len = latest_grid(risk, grid);
        certify_online_init(&risk->online, risk->alpha, risk->delta, risk->delta, grid, len);
        risk->betting = true;
    }
}

// ---- rows ----

static void begin_afresh(struct risk *risk, const char *engine)
{
    risk->counts.restarts += risk->engine ? 1 : 0;
    free(risk->engine);
    risk->engine = xstrdup(engine);
    risk->rows = risk->look = risk->looked = 0;
    risk->found = (struct certificate){.tau = -INFINITY};
    risk->scores = 0;
    risk->betting = false;
}

static void take(struct risk *risk, const struct run_state_candidate *candidate)
{
    const struct run_decided *decided = &candidate->decided;
    const char *engine = candidate->forecast->engine ? candidate->forecast->engine : "";
    bool free_of_choice = isnan(decided->threshold);
    struct certify_row row = {.score = risk_score(candidate->forecast),
                              .forecast = candidate->forecast->p_improves,
                              .propensity = decided->propensity,
                              .measured = decided->decision != DECISION_TRUST,
                              .improves = candidate->given_up || improvement_measured(candidate),
                              .cluster = risk->by_parent && candidate->proposed.point == 0
                                             ? candidate->proposed.parent
                                             : 0};
    if (!risk->engine || strcmp(risk->engine, engine) != 0) {
        begin_afresh(risk, engine);
    }
    if (risk->method == ONLINE) {
        bet(risk, &row, free_of_choice ? 1 : risk->audit);
    } else if (free_of_choice && !risk->found.certified) {
        calibrate(risk, &row);
    }
}

void risk_update(struct risk *risk, const struct run_state *run_state, uint64_t last)
{
    for (; risk->taken < last && risk->taken < run_state->candidate_count; risk->taken++) {
        const struct run_state_candidate *candidate = &run_state->candidate[risk->taken];
        uint64_t decision = candidate->decided.decision;
        bool measured = decision == DECISION_MEASURE || decision == DECISION_AUDIT;
        if (measured && !candidate->result && !candidate->given_up) {
            break;
        }
        if ((measured || decision == DECISION_TRUST) && !isnan(risk_score(candidate->forecast))) {
            take(risk, candidate);
        }
    }
}

// ---- what holds ----

struct certificate risk_now(const struct risk *risk)
{
    struct certificate none = {.tau = -INFINITY, .rows = risk->rows};
    if (risk->method == ONLINE && risk->betting) {
        return certify_online_now(&risk->online);
    }
    if (risk->method == ONLINE) {
        snprintf(none.text, sizeof(none.text),
                 "nothing is discarded: %zu candidates with a forecast of a model have an outcome, "
                 "thresholds are chosen after %d",
                 risk->scores, RISK_SCORES);
        return none;
    }
    if (risk->method == RECALL && risk->rows == 0) {
        return certify_recall(NULL, 0, risk->alpha);
    }
    if (risk->method == SELECTIVE && risk->looked == 0) {
        size_t look = first_look(risk->alpha, risk->delta);
        snprintf(none.text, sizeof(none.text),
                 "nothing is discarded: %zu candidates with a forecast of a model were measured, "
                 "the first test of a risk of %g %% comes after %zu",
                 risk->rows, 100 * risk->alpha, look);
        return none;
    }
    return risk->found;
}

struct risk_counts risk_counts(const struct risk *risk)
{
    return risk->counts;
}

const char *risk_engine(const struct risk *risk)
{
    return risk->engine;
}

char *risk_sentence(const struct run_state *run_state)
{
    const char *name = run_state->started.policy; // NULL before RUN_STARTED
    const struct policy *policy = name ? policy_find(name) : NULL;
    if (!policy || !policy->certifies) {
        return NULL;
    }
    if (run_state->certifications > 0 && !isnan(run_state->certified.threshold)) {
        return xstrdup(run_state->certified.text);
    }
    struct risk *risk = risk_create(&run_state->started);
    risk_update(risk, run_state, run_state->candidate_count);
    struct certificate now = risk_now(risk);
    risk_free(risk);
    return xstrdup(now.certified ? "nothing was discarded: what the last outcomes certify came too "
                                   "late for a decision"
                                 : now.text);
}
