// Design note. The candidates are gone through once, in order. Those of a phase are collected; when
// the phase ends its improvers are counted at all cuts, and its measured calls are watched if
// something is trusted. The cuts are fixed beforehand, so that no outcome has chosen one.
#include "client/policy/trust.h"

#include "client/policy/policy.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUTS 60
#define CUT_MOST 0.5 // who is forecast to improve is always measured
#define CUT_STEP 0.8 // the next cut
#define BETS 3
#define PROPENSITY_LEAST 0.01    // smaller ones count as this
#define BASE_PRIOR 0.5           // improvers, of 1 candidate, that the base rate begins with
#define BASE_MEMORY 64.0         // candidates that the base rate remembers
#define P_LEAST 0.01             // stated probabilities of less count as this for the alarm
#define P_MOST 0.95              // and of more as this
#define OUTCOMES (BIN_COUNT + 1) // a wrong candidate, or the bin of its speedup
#define SURPRISE 0.05 // of this share forecasts are uniform for the alarm: nothing is impossible

static const double bet[BETS] = {0.5, 0.8, 1};

// A candidate with a forecast of this forecaster.
struct call {
    double p, propensity;
    bool measured, improves;
    size_t outcome; // what came true, if measured
    double said;    // the probability that the forecast gave to that; NaN: it has no bins
};

// What is watched: "improves or not", and how fast candidates are.
enum { ALARM_IMPROVES, ALARM_SPEED, ALARMS };

struct phase {
    struct call *call; // owned
    size_t count, capacity;
    double incumbent;
    uint64_t map_version, model_version;
};

struct judging {
    struct trust trust;
    double confidence;
    struct phase phase;
    double wealth[CUTS][BETS];
    double expected[CUTS];
    uint64_t below[CUTS];
    double base_improvers, base_candidates; // of the base rate, forgetting
    double outcomes[OUTCOMES];              // how many candidates came out so, forgetting
    double odds[ALARMS]; // that the base rate is right, while something is trusted
};

void trust_forecaster(const struct forecast *forecast, char ret[static TRUST_FORECASTER_MAX])
{
    const char *engine = forecast->engine ? forecast->engine : "";
    const char *model = forecast->raw ? forecast->raw->model : NULL;
    size_t len = strlen(engine);
    if (!model) {
        (void)snprintf(ret, TRUST_FORECASTER_MAX, "%s", engine);
    } else if (strncmp(model, engine, len) == 0 && (model[len] == ' ' || model[len] == '\0')) {
        (void)snprintf(ret, TRUST_FORECASTER_MAX, "%s", model);
    } else {
        (void)snprintf(ret, TRUST_FORECASTER_MAX, "%s, %s", engine, model);
    }
}

static double cut_at(size_t cut)
{
    return CUT_MOST * pow(CUT_STEP, (double)cut);
}

static double skill_at(const struct judging *j, size_t cut)
{
    return 1 - ((double)j->below[cut] + TRUST_PRIOR) / (j->expected[cut] + TRUST_PRIOR);
}

// ---- counting ----

static void forget(struct judging *j)
{
    for (size_t cut = 0; cut < CUTS; cut++) {
        for (size_t b = 0; b < BETS; b++) {
            j->wealth[cut][b] = 1.0 / BETS;
        }
        j->expected[cut] = 0;
        j->below[cut] = 0;
    }
    j->trust.calls = j->trust.improvers = 0;
    j->trust.cut = NAN;
    for (size_t i = 0; i < ALARMS; i++) {
        j->odds[i] = 1;
    }
}

// Counts one improver at one cut. q: the probability of being below it without skill.
static void count_improver(struct judging *j, size_t cut, bool below, double q)
{
    j->expected[cut] += q;
    j->below[cut] += below;
    if (q >= 1) {
        return; // everything is below: nothing is told apart
    }
    for (size_t b = 0; b < BETS; b++) {
        j->wealth[cut][b] *= (1 - (below ? bet[b] : 0)) / (1 - bet[b] * q);
    }
}

// Counts the improvers of the phase. They are taken out one after the other: which of those that
// are left is the next one does not depend on forecasts without skill.
static void count_phase(struct judging *j)
{
    const struct phase *phase = &j->phase;
    for (size_t cut = 0; cut < CUTS; cut++) {
        double at = cut_at(cut), below = 0, all = 0;
        for (size_t i = 0; i < phase->count; i++) {
            all += phase->call[i].propensity;
            below += phase->call[i].p < at ? phase->call[i].propensity : 0;
        }
        for (size_t i = 0; i < phase->count; i++) {
            const struct call *call = &phase->call[i];
            if (call->measured && call->improves && all > 0) {
                count_improver(j, cut, call->p < at, fmin(fmax(below / all, 0), 1));
                all -= call->propensity;
                below -= call->p < at ? call->propensity : 0;
            }
        }
    }
}

// Finds the largest cut that is shown.
static void find_cut(struct judging *j)
{
    struct trust *trust = &j->trust;
    size_t found = CUTS, best = 0;
    double needed = TRUST_ODDS * pow(TRUST_AGAIN, (double)trust->alarms);
    for (size_t cut = 0; cut < CUTS && found == CUTS; cut++) {
        double wealth = 0;
        for (size_t b = 0; b < BETS; b++) {
            wealth += j->wealth[cut][b];
        }
        best = skill_at(j, cut) > skill_at(j, best) ? cut : best;
        if (wealth >= needed && skill_at(j, cut) >= j->confidence) {
            found = cut;
        }
    }
    trust->cut = found < CUTS ? cut_at(found) : NAN;
    best = found < CUTS ? found : best;
    trust->expected = j->expected[best];
    trust->below = j->below[best];
    trust->skill = skill_at(j, best);
}

// ---- watching ----

static double clamped(double p)
{
    return fmin(fmax(p, P_LEAST), P_MOST);
}

// Multiplies the odds by what one measured call says. Returns whether the alarm goes off.
static bool watch(struct judging *j, const struct call *call)
{
    double base = clamped((j->base_improvers + BASE_PRIOR) / (j->base_candidates + 1));
    double said = clamped(call->p), ratio[ALARMS];
    ratio[ALARM_IMPROVES] = call->improves ? base / said : (1 - base) / (1 - said);
    double came = (j->outcomes[call->outcome] + 1.0 / OUTCOMES) / (j->base_candidates + 1);
    ratio[ALARM_SPEED] =
        isnan(call->said) ? 1 : came / ((1 - SURPRISE) * call->said + SURPRISE / OUTCOMES);
    bool alarm = false;
    for (size_t i = 0; i < ALARMS; i++) {
        j->odds[i] = fmax(j->odds[i] * ratio[i], 1);
        alarm = alarm || j->odds[i] >= TRUST_ALARM;
    }
    return alarm;
}

// Takes the call into the base rates: as many candidates as it stands for.
static void add_to_base(struct judging *j, const struct call *call)
{
    double weight = 1 / call->propensity, keep = exp2(-weight / BASE_MEMORY);
    j->base_improvers = keep * j->base_improvers + (call->improves ? weight : 0);
    j->base_candidates = keep * j->base_candidates + weight;
    for (size_t i = 0; i < OUTCOMES; i++) {
        j->outcomes[i] = keep * j->outcomes[i] + (i == call->outcome ? weight : 0);
    }
}

// ---- phases ----

static void end_phase(struct judging *j, uint64_t last)
{
    struct phase *phase = &j->phase;
    bool trusted = !isnan(j->trust.cut), alarm = false;
    for (size_t i = 0; i < phase->count && !alarm; i++) {
        const struct call *call = &phase->call[i];
        if (call->measured) {
            alarm = trusted && watch(j, call);
            add_to_base(j, call);
            j->trust.calls++;
            j->trust.improvers += call->improves;
        }
    }
    if (alarm) {
        forget(j);
        j->trust.alarms++;
        j->trust.alarm_at = last;
    } else {
        count_phase(j);
        find_cut(j);
    }
    phase->count = 0;
}

static void add_call(struct judging *j, const struct run_state_candidate *candidate)
{
    struct phase *phase = &j->phase;
    const struct run_decided *decided = &candidate->decided;
    if (phase->count == phase->capacity) {
        phase->capacity = 2 * phase->capacity + 32;
        phase->call = xrealloc(phase->call, phase->capacity, sizeof(*phase->call));
    }
    const struct forecast *forecast = candidate->forecast;
    const struct result *result = candidate->result;
    bool ratio = result && verdict_is_ratio(result->verdict) && result->speedup &&
                 isfinite(result->speedup->log2);
    size_t outcome = ratio ? 1 + bin_of(result->speedup->log2) : 0;
    bool chance = decided->propensity > 0 && decided->propensity <= 1;
    phase->call[phase->count++] = (struct call){
        .p = forecast->p_improves,
        .propensity = chance ? fmax(decided->propensity, PROPENSITY_LEAST) : PROPENSITY_LEAST,
        .measured = result,
        .improves = improvement_measured(candidate),
        .outcome = outcome,
        .said = forecast->bins_count != BIN_COUNT ? NAN
                : ratio ? forecast->p_correct * forecast->bins[outcome - 1]
                        : 1 - forecast->p_correct,
    };
}

// Whether the candidate is in the phase that is being collected.
static bool same_phase(const struct phase *phase, const struct run_state_candidate *candidate)
{
    return phase->incumbent == candidate->decided.incumbent_log2 &&
           phase->map_version == candidate->forecast->map_version &&
           phase->model_version == candidate->forecast->model_version;
}

// Whether the candidate is one of the forecaster's calls. What a screening chose is none: the
// choice, and not this forecast, was the decision. Nor is what a look back has had measured: its
// forecast is of another phase than those that it was compared with.
static bool is_call(const struct run_state_candidate *candidate, const char *forecaster)
{
    uint64_t decision = candidate->decided.decision;
    char own[TRUST_FORECASTER_MAX];
    if ((decision != DECISION_MEASURE && decision != DECISION_AUDIT &&
         decision != DECISION_TRUST) ||
        candidate->proposed.screened > 0 || candidate->decided.look > 0 ||
        !policy_usable(candidate->forecast)) {
        return false;
    }
    trust_forecaster(candidate->forecast, own);
    return strcmp(own, forecaster) == 0;
}

struct trust trust_judge(const struct run_state *run_state, uint64_t visible,
                         const char *forecaster)
{
    struct judging j = {.confidence = run_state->started.confidence};
    uint64_t last = 0;
    forget(&j);
    for (uint64_t id = 1; id <= visible && id <= run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
        if (!is_call(candidate, forecaster)) {
            continue;
        }
        if (j.phase.count > 0 && !same_phase(&j.phase, candidate)) {
            end_phase(&j, last);
        }
        j.phase.incumbent = candidate->decided.incumbent_log2;
        j.phase.map_version = candidate->forecast->map_version;
        j.phase.model_version = candidate->forecast->model_version;
        add_call(&j, candidate);
        last = id;
    }
    end_phase(&j, last);
    free(j.phase.call);
    return j.trust;
}

bool trust_holds(const struct run_state *run_state, uint64_t visible)
{
    if (run_state->started.trust_rule != RUN_TRUST_SKILL) {
        return true;
    }
    for (uint64_t id = visible < run_state->candidate_count ? visible : run_state->candidate_count;
         id >= 1; id--) {
        const struct forecast *forecast = run_state->candidate[id - 1].forecast;
        if (forecast) {
            char forecaster[TRUST_FORECASTER_MAX];
            trust_forecaster(forecast, forecaster);
            return !isnan(trust_judge(run_state, visible, forecaster).cut);
        }
    }
    return false;
}

char *trust_sentence(const struct run_state *run_state, const char *forecaster,
                     const struct trust *now)
{
    const struct run_trusted *before = run_state_trust(run_state, forecaster);
    if (now->alarms > (before ? before->alarms : 0)) {
        return xasprintf("trust in \"%.300s\" is gone: up to candidate %llu the base rate foretold "
                         "better than its forecasts what improves; it is to be earned anew",
                         forecaster, (unsigned long long)now->alarm_at);
    }
    if (!isnan(now->cut)) {
        return xasprintf("forecasts of \"%.300s\" with P(improves) below %.3f are trusted: of %llu "
                         "improvers among %llu measured calls %llu were below, where the base rate "
                         "has %.1f",
                         forecaster, now->cut, (unsigned long long)now->improvers,
                         (unsigned long long)now->calls, (unsigned long long)now->below,
                         now->expected);
    }
    if (before && !isnan(before->cut)) {
        return xasprintf("trust in \"%.300s\" is gone: improvers were among those that it would "
                         "have left out (skill %.2f)",
                         forecaster, now->skill);
    }
    if (!before && run_state->trust_count > 0) {
        return xasprintf("forecasts come from \"%.300s\" now: trust in \"%.300s\" is none in it",
                         forecaster, run_state->trust[run_state->trust_count - 1].forecaster);
    }
    return xasprintf("forecasts of \"%.300s\" are not trusted: of its %llu measured calls %llu "
                     "improved, which shows a skill of %.2f against the base rate, and not enough",
                     forecaster, (unsigned long long)now->calls, (unsigned long long)now->improvers,
                     now->skill);
}
