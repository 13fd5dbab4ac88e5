#include "client/policy.h"

#include "common/mem.h"
#include "common/stats.h"
#include "contract/bins.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STREAM_AUDIT 0x61756469ULL

// With which probability a trusted candidate is audited: in proportion to the standard deviation of
// "the call is right", since doubtful calls teach more about the calibration, from share at the
// threshold down to half of it.
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
}

// A forecast that can be used: probabilities that are some.
static bool usable(const struct forecast *forecast)
{
    return forecast != NULL && forecast->p_improves >= 0 && forecast->p_improves <= 1 &&
           forecast->confidence >= 0 && forecast->confidence <= 1;
}

static void decide_threshold(const struct policy_input *input, struct policy_decision *ret)
{
    const struct forecast *forecast = input->forecast;
    measure(ret);
    ret->confidence = NAN;
    if (!usable(forecast)) {
        snprintf(ret->reason, sizeof(ret->reason), "there is no forecast: %.400s",
                 forecast != NULL                 ? "its numbers are no probabilities"
                 : input->forecast_reason != NULL ? input->forecast_reason
                                                  : "nobody made one");
        return;
    }
    ret->confidence = forecast->confidence;
    if (forecast->p_improves >= 0.5) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "it is forecast to improve on the incumbent (P = %.2f)", forecast->p_improves);
        return;
    }
    if (forecast->confidence < input->confidence) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "the confidence of the forecast, %.2f, is below %.2f", forecast->confidence,
                 input->confidence);
        return;
    }
    ret->propensity = audit_propensity(input->audit, input->confidence, forecast->confidence);
    bool audit = audit_coin(input->seed, input->candidate, ret->propensity);
    ret->decision = audit ? DECISION_AUDIT : DECISION_TRUST;
    snprintf(ret->reason, sizeof(ret->reason),
             "it is forecast not to improve (P = %.2f) with confidence %.2f%s",
             forecast->p_improves, forecast->confidence, audit ? "; measured as an audit" : "");
}

// Early forecasts have little to be compared with, and their model little to go by.
#define COMPARED_LEAST 16

static void decide_budget(const struct policy_input *input, struct policy_decision *ret)
{
    const struct forecast *forecast = input->forecast;
    measure(ret);
    ret->confidence = NAN;
    if (!usable(forecast)) {
        decide_threshold(input, ret);
        return;
    }
    ret->confidence = forecast->confidence;
    if (forecast->trained_rows == 0 || input->compared < COMPARED_LEAST) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "too little is known yet to choose by (%llu outcomes, %zu forecasts)",
                 (unsigned long long)forecast->trained_rows, input->compared);
        return;
    }
    if (input->standing < input->share) {
        snprintf(ret->reason, sizeof(ret->reason),
                 "%.0f %% of the last %zu forecasts promise more, less than %.0f %%",
                 100 * input->standing, input->compared, 100 * input->share);
        return;
    }
    ret->propensity = input->audit;
    bool audit = audit_coin(input->seed, input->candidate, ret->propensity);
    ret->decision = audit ? DECISION_AUDIT : DECISION_TRUST;
    snprintf(ret->reason, sizeof(ret->reason),
             "%.0f %% of the last %zu forecasts promise more, at least %.0f %%%s",
             100 * input->standing, input->compared, 100 * input->share,
             audit ? "; measured as an audit" : "");
}

static void decide_all(const struct policy_input *input, struct policy_decision *ret)
{
    measure(ret);
    ret->confidence = input->forecast != NULL ? input->forecast->confidence : NAN;
    snprintf(ret->reason, sizeof(ret->reason), "the policy measures every candidate");
}

static const struct policy policies[] = {
    {"threshold", "trust a forecast of no improvement that is confident enough", decide_threshold},
    {"budget", "measure a share of the candidates, those that promise most", decide_budget},
    {"all", "measure every candidate", decide_all},
};

// ---- standing ----

double policy_promise(const struct forecast *forecast, double log2)
{
    if (forecast->bins_count != BIN_COUNT) {
        return forecast->expected_improvement;
    }
    return forecast->p_correct * bins_expected_excess(forecast->bins, log2);
}

double policy_standing(const struct fold *fold, uint64_t candidate, uint64_t last, double incumbent,
                       size_t *ret_compared)
{
    const struct forecast *own = fold->candidate[candidate - 1].forecast;
    size_t compared = 0;
    double promise, more = 0;

    *ret_compared = 0;
    if (!usable(own)) {
        return 0;
    }
    promise = policy_promise(own, incumbent);
    for (uint64_t id = last; id >= 1 && compared < POLICY_WINDOW; id--) {
        const struct forecast *other = fold->candidate[id - 1].forecast;

        if (usable(other) && other->trained_rows > 0) {
            double theirs = policy_promise(other, incumbent);

            compared++;
            more += theirs > promise ? 1 : theirs == promise && id != candidate ? 0.5 : 0;
        }
    }
    *ret_compared = compared;
    return compared > 0 ? more / (double)compared : 0;
}

const struct policy *policy_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        if (strcmp(policies[i].name, name) == 0) {
            return &policies[i];
        }
    }
    return NULL;
}
