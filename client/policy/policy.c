#include "client/policy/policy.h"

#include "client/policy/risk.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

// Trusts the forecast, except that the candidate is audited with this probability. Returns whether
// it is audited.
static bool trust(const struct policy_view *view, double audit, struct policy_decision *ret)
{
    bool coin = audit_coin(view->run_state->started.seed, view->candidate, audit);
    ret->propensity = audit;
    ret->decision = coin ? DECISION_AUDIT : DECISION_TRUST;
    return coin;
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
    ret->confidence = forecast->confidence;
    if (forecast->p_improves >= 0.5) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "it is forecast to improve on the incumbent (P = %.2f)", forecast->p_improves);
        return;
    }
    if (forecast->confidence < started->confidence) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "the confidence of the forecast, %.2f, is below %.2f", forecast->confidence,
                 started->confidence);
        return;
    }
    bool audit = trust(
        view, audit_propensity(started->audit, started->confidence, forecast->confidence), ret);
    snprintf(ret->reason, sizeof(ret->reason),
             "it is forecast not to improve (P = %.2f) with confidence %.2f%s",
             forecast->p_improves, forecast->confidence, audit ? "; measured as an audit" : "");
}

#define COMPARED_LEAST 4      // with fewer forecasts to compare with, policy `budget` does not rank
#define BUDGET_WIDE 16        // default of --wide for policy `budget`
#define COST_LEAST 8          // correct outcomes before costs are fitted
#define COST_FIXED_LEAST 0.05 // the fixed cost is at least this share of the mean cost

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
    bool audit = trust(view, view->run_state->started.audit, ret);
    ret->confidence = forecast->confidence;
    snprintf(ret->reason, sizeof(ret->reason),
             "%.0f %% of the last %zu forecasts promise more per second, at least %.0f %%%s",
             100 * rank, compared, 100 * share, audit ? "; measured as an audit" : "");
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
    bool audit = trust(view, view->run_state->started.audit, ret);
    snprintf(ret->reason, sizeof(ret->reason),
             "P = %.3f of an improvement is below the certified %.3f%s", forecast->p_improves,
             threshold, audit ? "; measured as an audit" : "");
}

static void decide_all(const struct policy_view *view, struct policy_decision *ret)
{
    const struct forecast *forecast = forecast_of(view);
    measure(ret);
    ret->confidence = forecast ? forecast->confidence : NAN;
    snprintf(ret->reason, sizeof(ret->reason), "the policy measures every candidate");
}

// Policy `rank`: a candidate that a screening has chosen is measured, since the choice was the
// decision. Others go by decide_threshold: the first ones, and those of generators without
// parameters.
static void decide_rank(const struct policy_view *view, struct policy_decision *ret)
{
    const struct run_state_candidate *candidate = &view->run_state->candidate[view->candidate - 1];
    uint64_t screened = candidate->proposed.screened;
    if (screened == 0 || !policy_usable(candidate->forecast)) {
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
    .discards = true,
    .screens = true};
static const struct policy policy_all = {
    .name = "all", .help = "measure every candidate", .decide = decide_all, .blind = true};

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

struct measure_cost policy_cost(const struct run_state *run_state, uint64_t visible)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, failures = 0, failed = 0;
    for (uint64_t id = 1; id <= visible && id <= run_state->candidate_count; id++) {
        const struct result *result = run_state->candidate[id - 1].result;
        double held = result ? run_state_held_seconds(result) : 0;
        if (held > 0 && verdict_is_ratio(result->verdict) && result->speedup &&
            isfinite(result->speedup->log2)) {
            double slow = exp2(-result->speedup->log2);
            n++;
            x += slow;
            y += held;
            xx += slow * slow;
            xy += slow * held;
        } else if (held > 0) {
            failures++;
            failed += held;
        }
    }
    struct measure_cost ret = {0};
    if (n < COST_LEAST) {
        return ret;
    }
    double spread = xx - x * x / n;
    ret.slope = spread > 1e-9 * xx ? fmax((xy - x * y / n) / spread, 0) : 0;
    ret.fixed = fmax((y - ret.slope * x) / n, COST_FIXED_LEAST * y / n);
    ret.failure = failures > 0 ? failed / failures : y / n;
    return ret;
}

double policy_seconds(const struct measure_cost *cost, const struct forecast *forecast)
{
    double slow = 0;
    if (cost->fixed <= 0 || forecast->bins_count != BIN_COUNT) {
        return 1;
    }
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        slow += forecast->bins[bin] * exp2(-bin_midpoint(bin));
    }
    return forecast->p_correct * (cost->fixed + cost->slope * slow) +
           (1 - forecast->p_correct) * cost->failure;
}

// The expected improvement beyond the incumbent per expected device-second. Without a fitted cost,
// the expected improvement itself.
static double improvement_per_second(const struct measure_cost *cost,
                                     const struct forecast *forecast, double incumbent_log2)
{
    return policy_expected_improvement(forecast, incumbent_log2) / policy_seconds(cost, forecast);
}

double policy_share_ahead(const struct policy_view *view, size_t *ret_compared)
{
    const struct run_state_candidate *candidate = view->run_state->candidate;
    const struct forecast *own = candidate[view->candidate - 1].forecast;
    *ret_compared = 0;
    if (!policy_usable(own)) {
        return 0;
    }
    struct measure_cost cost = policy_cost(view->run_state, view->visible);
    double improvement = improvement_per_second(&cost, own, view->incumbent_log2), more = 0;
    size_t compared = 0;
    for (uint64_t id = view->last; id >= 1 && compared < POLICY_WINDOW; id--) {
        const struct forecast *other = candidate[id - 1].forecast;
        if (policy_usable(other) && other->trained_rows > 0) {
            double theirs = improvement_per_second(&cost, other, view->incumbent_log2);
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
    static const struct policy *const all[] = {&policy_rank, &policy_threshold, &policy_budget,
                                               &policy_risk, &policy_all,       &policy_published};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}
