#include "client/policy/policy.h"

#include "client/policy/costs.h"
#include "client/policy/risk.h"
#include "client/policy/trust.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHY 160           // bytes of what speaks for trusting a forecast
#define TOLD_APART 32     // candidates among whose forecasts a trusted one must not be of the best
#define AS_PROMISING 0.8  // of the best one's P(improves): no less promises as much
#define AUDIT_DURING 0.25 // share of the audits that is made before the end
#define STREAM_AUDIT 0x61756469ULL // separates these draws from other uses of the seed

// The probability with which a trusted candidate is audited. It is proportional to the standard
// deviation of "the call is right", since doubtful calls teach more about the calibration. It is
// share at the confidence threshold and never less than half of share.
static double audit_propensity(double share, double threshold, double confidence)
{
    double spread = sqrt(confidence * (1 - confidence)), most = sqrt(threshold * (1 - threshold));
    double part = most > 0 && threshold >= 0.5 ? spread / most : 1;
    return share * (part < 0.5 ? 0.5 : part > 1 ? 1 : part);
}

// True with probability share, always the same for one seed and candidate.
static bool audit_coin(uint64_t seed, uint64_t candidate, double share)
{
    return (double)(stats_philox(seed, STREAM_AUDIT, candidate) >> 11) * 0x1p-53 < share;
}

static void measure(struct policy_decision *ret)
{
    ret->decision = DECISION_MEASURE;
    ret->propensity = 1;
    ret->threshold = NAN;
}

bool policy_usable(const struct forecast *forecast)
{
    return forecast && forecast->p_improves >= 0 && forecast->p_improves <= 1 &&
           forecast->confidence >= 0 && forecast->confidence <= 1;
}

static const struct forecast *forecast_of(const struct policy_view *view)
{
    return view->run_state->candidate[view->candidate - 1].forecast;
}

// Whether the candidate is the most promising one of its batch, the first of several, or promises
// about as much as the best of its batch and of those before it that were forecast against the same
// incumbent: what a forecaster does not tell from its best it does not tell from an improver.
// Forecasts against another incumbent answer another question.
static bool is_promising(const struct policy_view *view)
{
    double own = forecast_of(view)->p_improves, best = own;
    uint64_t back = view->last > TOLD_APART ? view->last - TOLD_APART + 1 : 1;
    bool leads = true;
    for (uint64_t id = back < view->first ? back : view->first; id <= view->last; id++) {
        const struct run_state_candidate *other = &view->run_state->candidate[id - 1];
        bool mate = id >= view->first;
        if (policy_usable(other->forecast) &&
            (mate || other->decided.incumbent_log2 == view->incumbent_log2)) {
            double theirs = other->forecast->p_improves;
            bool ahead = theirs > own || (theirs == own && id < view->candidate);
            leads = leads && !(mate && ahead);
            best = fmax(best, theirs);
        }
    }
    return leads || own >= best * AS_PROMISING;
}

// Why the forecast may not be trusted, malloc'd; NULL when it may: its forecaster has shown skill
// in this search (client/policy/trust.h), it is below the cut from which on that was shown, and
// others of the batch promise more, so that each batch has a candidate that shows what the
// forecaster is worth now.
static char *distrust(const struct policy_view *view)
{
    const struct forecast *forecast = forecast_of(view);
    if (view->run_state->started.trust_rule != RUN_TRUST_SKILL) {
        return NULL;
    }
    char forecaster[TRUST_FORECASTER_MAX];
    trust_forecaster(forecast, forecaster);
    const struct run_trusted *trust = run_state_trust(view->run_state, forecaster);
    if (!trust || isnan(trust->cut)) {
        return xasprintf("its forecaster has not shown in this search that it knows improvers from "
                         "others (skill %.2f after %llu improvers)",
                         trust ? trust->skill : 0.0,
                         (unsigned long long)(trust ? trust->improvers : 0));
    }
    if (!(forecast->p_improves < trust->cut)) {
        return xasprintf(
            "P(improves) = %.3f is not below %.3f, up to which its forecaster has shown "
            "skill",
            forecast->p_improves, trust->cut);
    }
    return is_promising(view)
               ? xasprintf("none of its batch, or of those before it against the same incumbent, "
                           "is forecast to be clearly better")
               : NULL;
}

// Trusts the forecast, unless it may not be, except that the candidate is audited with this
// probability. why says what speaks for it.
static void trust(const struct policy_view *view, double audit, const char *why,
                  struct policy_decision *ret)
{
    char *against = distrust(view);
    if (against) {
        measure(ret);
        snprintf(ret->reason, sizeof(ret->reason), "%s, but %s", why, against);
        free(against);
        return;
    }
    bool coin = audit_coin(view->run_state->started.seed, view->candidate, audit);
    ret->propensity = audit;
    ret->decision = coin ? DECISION_AUDIT : DECISION_TRUST;
    snprintf(ret->reason, sizeof(ret->reason), "%s%s", why, coin ? "; measured as an audit" : "");
}

// The probability with which a trusted candidate is audited during the search: the wanted one, as
// long as all of them together stay below AUDIT_DURING of the audits that the measurements so far
// allow, and one more is no more than all that they allow. The others are drawn at the end, against
// the last incumbent, where they tell more (client/search/pipeline_survey.c).
static double audit_during(const struct policy_view *view, double wanted)
{
    double share = view->run_state->started.audit, allowed = 0, measured = 0, made = 0;
    for (uint64_t id = 1; id < view->candidate; id++) {
        const struct run_decided *decided = &view->run_state->candidate[id - 1].decided;
        measured += decided->decision == DECISION_MEASURE;
        made += decided->decision == DECISION_AUDIT;
        if (decided->decision == DECISION_MEASURE) {
            allowed += AUDIT_DURING * share;
        } else if (decided->decision == DECISION_TRUST || decided->decision == DECISION_AUDIT) {
            allowed -= decided->draw == 0 ? decided->propensity : 0;
        }
    }
    bool room = share >= 1 || made + 1 <= measured * share / (1 - share) + 1e-9;
    return room ? fmin(fmax(allowed, 0), wanted) : 0;
}

// What measuring the candidate is expected to cost, of what measuring one has cost on average: 1
// while that is not known, where the forecast does not say how fast it is, and in searches that
// began without this rule.
static double relative_cost(const struct policy_view *view)
{
    const struct run_state *run_state = view->run_state;
    if (!(run_state->started.rules & RUN_RULE_WORTH)) {
        return 1;
    }
    struct measure_cost cost = measure_cost_fit(run_state, view->visible);
    struct cost_weights weights = cost_weights_of(&run_state->started);
    double usual = cost_usual(run_state, view->visible, &weights, true);
    double own = measure_cost_expect(&cost, &weights, forecast_of(view), 0);
    bool known = cost.fixed > 0 && usual > 0 && forecast_of(view)->bins_count == BIN_COUNT;
    return known ? own / usual : 1;
}

static void decide_threshold(const struct policy_view *view, struct policy_decision *ret)
{
    const struct run_started *started = &view->run_state->started;
    const struct forecast *forecast = forecast_of(view);
    const char *why = view->run_state->candidate[view->candidate - 1].forecast_reason;
    measure(ret);
    ret->confidence = NAN;
    if (!policy_usable(forecast)) {
        snprintf(ret->reason, sizeof(ret->reason), "there is no forecast: %.400s",
                 forecast ? "its numbers are no probabilities"
                 : why    ? why
                          : "nobody made one");
        return;
    }
    // That measuring it is not worth its cost now: one that costs twice as much as usual is to be
    // twice as likely to improve.
    double relative = relative_cost(view);
    double confidence = fmax(1 - (1 - forecast->confidence) / relative, 0);
    ret->confidence = forecast->confidence;
    if (forecast->p_improves >= 0.5) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "it is forecast to improve on the incumbent (P = %.2f)", forecast->p_improves);
        return;
    }
    char of[64] = "";
    if (relative != 1) {
        snprintf(of, sizeof(of), ", at %.2f of the usual cost,", relative);
    }
    if (confidence < started->confidence) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "the confidence of the forecast, %.2f%s is below %.2f", confidence,
                 relative != 1 ? of : ",", started->confidence);
        return;
    }
    char reason[WHY];
    snprintf(reason, sizeof(reason),
             "it is forecast not to improve (P = %.2f)%s with confidence %.2f",
             forecast->p_improves, of, confidence);
    double wanted = audit_propensity(started->audit, started->confidence, confidence);
    trust(view, audit_during(view, wanted), reason, ret);
}

#define COMPARED_LEAST 4 // with fewer forecasts to compare with, policy `budget` does not rank
#define BUDGET_WIDE 16   // default of --wide for policy `budget`

// Policy `budget`: of the candidates that decide_threshold would measure, only those with the
// highest expected improvement per second are measured.
static void decide_budget(const struct policy_view *view, struct policy_decision *ret)
{
    const struct forecast *forecast = forecast_of(view);
    double share = view->run_state->started.share;
    size_t compared = 0;
    double rank = policy_usable(forecast) ? policy_share_ahead(view, &compared) : 0;
    if (compared < COMPARED_LEAST || forecast->trained_rows == 0 || rank < share) {
        decide_threshold(view, ret);
        return;
    }
    char why[WHY];
    snprintf(why, sizeof(why),
             "%.0f %% of the last %zu forecasts promise more per second, at least %.0f %%",
             100 * rank, compared, 100 * share);
    trust(view, audit_during(view, view->run_state->started.audit), why, ret);
    ret->confidence = forecast->confidence;
}

// The certified threshold, if it was certified for the engine of this forecast; NaN otherwise.
static double certified_threshold(const struct run_state *run_state,
                                  const struct forecast *forecast)
{
    const char *engine = forecast->engine ? forecast->engine : "";
    const char *whose = run_state->certified.engine ? run_state->certified.engine : "";
    bool holds = run_state->certifications > 0 && strcmp(engine, whose) == 0;
    return holds ? run_state->certified.threshold : NAN;
}

static void decide_risk(const struct policy_view *view, struct policy_decision *ret)
{
    const struct forecast *forecast = forecast_of(view);
    double score = risk_score(forecast), threshold;
    if (!policy_usable(forecast)) {
        decide_threshold(view, ret);
        return;
    }
    measure(ret);
    ret->confidence = forecast->confidence;
    if (isnan(score)) {
        snprintf(ret->reason, sizeof(ret->reason), "no outcome is known yet to forecast by");
        return;
    }
    ret->threshold = threshold = certified_threshold(view->run_state, forecast);
    if (isnan(threshold)) {
        snprintf(ret->reason, sizeof(ret->reason), "no threshold is certified (P = %.3f)",
                 forecast->p_improves);
        return;
    }
    if (score >= threshold) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "P = %.3f of an improvement is not below the certified %.3f", forecast->p_improves,
                 threshold);
        return;
    }
    char why[WHY];
    snprintf(why, sizeof(why), "P = %.3f of an improvement is below the certified %.3f",
             forecast->p_improves, threshold);
    trust(view, view->run_state->started.audit, why, ret);
}

static void decide_all(const struct policy_view *view, struct policy_decision *ret)
{
    const struct forecast *forecast = forecast_of(view);
    measure(ret);
    ret->confidence = forecast ? forecast->confidence : NAN;
    snprintf(ret->reason, sizeof(ret->reason), "the policy measures every candidate");
}

static bool foregone_all(const struct policy_view *view)
{
    (void)view;
    return true;
}

// Nobody is trusted who has shown nothing.
static bool foregone_threshold(const struct policy_view *view)
{
    return view->visible == 0 && view->run_state->started.trust_rule == RUN_TRUST_SKILL;
}

// Whether a screening has chosen the candidate.
static bool is_chosen(const struct policy_view *view)
{
    return view->run_state->candidate[view->candidate - 1].proposed.screened > 0 &&
           policy_usable(forecast_of(view));
}

// Whether it is known that there will be no forecast of the candidate.
static bool is_unknown(const struct policy_view *view)
{
    return view->run_state->candidate[view->candidate - 1].forecast_done &&
           !policy_usable(forecast_of(view));
}

static bool foregone_rank(const struct policy_view *view)
{
    return is_chosen(view) || is_unknown(view) || foregone_threshold(view);
}

// Policy `rank`: a candidate that a screening has chosen is measured, since the choice was the
// decision. Others go by decide_threshold: the first ones, and those of generators without
// parameters.
static void decide_rank(const struct policy_view *view, struct policy_decision *ret)
{
    const struct run_state_candidate *candidate = &view->run_state->candidate[view->candidate - 1];
    uint64_t screened = candidate->proposed.screened;
    if (!is_chosen(view)) {
        decide_threshold(view, ret);
        return;
    }
    measure(ret);
    ret->confidence = candidate->forecast->confidence;
    snprintf(ret->reason, sizeof(ret->reason),
             "chosen from %llu points before any was compiled: P(improves) = %.3f, expected "
             "improvement %.4f (log2)",
             (unsigned long long)screened, candidate->forecast->p_improves,
             candidate->forecast->expected_improvement);
}

static const struct policy policy_threshold = {
    .name = "threshold",
    .help = "trust a forecast of no improvement that is confident enough",
    .decide = decide_threshold,
    .foregone = foregone_threshold,
    .discards = true};
static const struct policy policy_budget = {
    .name = "budget",
    .help = "the same, but of what it would measure only those that promise most",
    .decide = decide_budget,
    .discards = true,
    .wide = BUDGET_WIDE};
static const struct policy policy_risk = {
    .name = "risk",
    .help = "trust below a threshold that is certified for a risk, and measure until one is",
    .decide = decide_risk,
    .discards = true,
    .certifies = true};
static const struct policy policy_rank = {
    .name = "rank",
    .help = "of many points compile and measure those that are forecast to promise most",
    .decide = decide_rank,
    .foregone = foregone_rank,
    .discards = true,
    .screens = true};
static const struct policy policy_all = {.name = "all",
                                         .help = "measure every candidate",
                                         .decide = decide_all,
                                         .foregone = foregone_all,
                                         .blind = true};

void policy_batches(const struct policy *policy, uint64_t *batch, uint64_t *wide)
{
    if (policy->batch != 0) {
        *batch = *wide = policy->batch;
    } else if (*wide == 0 && policy->screens) {
        *wide = *batch; // nearly all of a batch are measured
    } else if (*wide == 0) {
        *wide = policy->wide != 0            ? policy->wide
                : 2 * *batch < RUN_BATCH_MAX ? 2 * *batch
                                             : RUN_BATCH_MAX;
    }
}

// ---- promises ----

double policy_expected_improvement(const struct forecast *forecast, double log2)
{
    if (forecast->bins_count != BIN_COUNT) {
        return forecast->expected_improvement;
    }
    return forecast->p_correct * bins_expected_excess(forecast->bins, log2);
}

// What the expected improvement of a compiled candidate is divided by.
struct prices {
    struct measure_cost cost;
    struct cost_weights weights;
};

// The expected improvement beyond the incumbent per expected cost. Without a fitted cost, the
// expected improvement itself.
static double improvement_per_cost(const struct prices *prices, const struct forecast *forecast,
                                   double incumbent_log2)
{
    return policy_expected_improvement(forecast, incumbent_log2) /
           measure_cost_expect(&prices->cost, &prices->weights, forecast, 0);
}

double policy_share_ahead(const struct policy_view *view, size_t *ret_compared)
{
    const struct run_state_candidate *candidate = view->run_state->candidate;
    const struct forecast *own = candidate[view->candidate - 1].forecast;
    *ret_compared = 0;
    if (!policy_usable(own)) {
        return 0;
    }
    struct prices prices = {.cost = measure_cost_fit(view->run_state, view->visible),
                            .weights = cost_weights_of(&view->run_state->started)};
    double improvement = improvement_per_cost(&prices, own, view->incumbent_log2), more = 0;
    size_t compared = 0;
    for (uint64_t id = view->last; id >= 1 && compared < POLICY_WINDOW; id--) {
        const struct forecast *other = candidate[id - 1].forecast;
        if (policy_usable(other) && other->trained_rows > 0) {
            double theirs = improvement_per_cost(&prices, other, view->incumbent_log2);
            compared++;
            more += theirs > improvement                             ? 1
                    : theirs == improvement && id != view->candidate ? 0.5
                                                                     : 0;
        }
    }
    *ret_compared = compared;
    return compared > 0 ? more / (double)compared : 0;
}

const struct policy *policy_find(const char *name)
{
    static const struct policy *const all[] = {
        &policy_rank, &policy_threshold, &policy_budget,           &policy_risk,
        &policy_all,  &policy_published, &policy_published_correct};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}
