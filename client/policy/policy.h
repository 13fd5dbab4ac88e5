// Whether a forecast is trusted or its candidate is measured. The pipeline asks for each candidate
// of a batch once its forecasts have come; replays ask the same. Policies are pure functions: the
// same view gives the same decision. They know nothing of daemons, of workers and of how the run is
// stored.
#ifndef CLIENT_POLICY_POLICY_H
#define CLIENT_POLICY_POLICY_H

#include "client/run/run.h"
#include "client/run/run_state.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

// What a decision may depend on.
struct policy_view {
    // Forecasts of candidates 1 to last may be looked at, outcomes only of candidates 1 to visible.
    const struct run_state *run_state;
    uint64_t candidate;    // the one to be decided about
    uint64_t first, last;  // the batch that it belongs to
    uint64_t visible;      // see above
    double incumbent_log2; // log2 speedup of the best visible candidate; 0: the baseline
};

#define POLICY_WINDOW 64 // how many forecasts policy_share_ahead compares a candidate's with

#define POLICY_CONFIDENCE 0.9 // from which on a forecast is trusted, unless the user says otherwise

struct policy_decision {
    enum decision decision; // DECISION_MEASURE, _TRUST or _AUDIT
    double propensity;      // the probability of being measured
    double threshold;       // of P(improves), for policies that certify one; NaN: none holds
    double confidence;      // the forecast's; NaN without a forecast
    char reason[512];       // one sentence
};

struct policy {
    const char *name, *help; // as --policy names and lists it
    void (*decide)(const struct policy_view *view, struct policy_decision *ret);
    // Whether the candidate of the view will be measured whatever is still missing of its batch,
    // and of what its forecaster has shown, if it compiles to an object of its own and the limits
    // allow it; incumbent_log2 is not set. NULL: that is never known before.
    bool (*foregone)(const struct policy_view *view);
    bool blind;       // It looks at no forecast.
    bool discards;    // Candidates with poor forecasts cost no measurement, however many come.
    bool screens;     // The points to be compiled are chosen by forecasts, from many.
    bool certifies;   // Its threshold is the run state's certified one (client/policy/risk.h).
    bool replay_only; // Another project's rule, for comparison in replays; not for searching.
    uint64_t batch;   // candidates of a batch that the rule itself demands; 0: any number
    uint64_t wide;    // the default of --wide; 0: twice the batch
};

extern const struct policy policy_published, policy_published_correct;

// NULL when there is no policy of this name.
const struct policy *policy_find(const char *name);

// Settles how many candidates are considered at a time (batch and wide of run_started). A policy
// with a batch of its own overrides both. Otherwise a wide of 0, which means that none was asked
// for, becomes the policy's default or twice the batch; where points are screened, the batch.
void policy_batches(const struct policy *policy, uint64_t *batch, uint64_t *wide);

// The expected improvement beyond a log2 speedup of log2: E(max(y - log2, 0)), where a wrong
// candidate counts as 0. It is computed from the forecast's bins, so that forecasts that were made
// before the incumbent changed need not be made again.
double policy_expected_improvement(const struct forecast *forecast, double log2);

// Whether there is a forecast and its probabilities lie between 0 and 1. forecast may be NULL.
bool policy_usable(const struct forecast *forecast);

// Ranks the candidate by its expected improvement beyond the incumbent, per device-second that
// measuring it is expected to take, among the last POLICY_WINDOW candidates of 1 to last that have
// a usable forecast of a trained model. The expected device-seconds are fitted to the visible
// outcomes, as a line in 2^-y. Returns the share of those candidates that rank higher, equal ones
// counting half, and in *ret_compared how many candidates were compared.
double policy_share_ahead(const struct policy_view *view, size_t *ret_compared);

#endif
