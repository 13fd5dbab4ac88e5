// Whether a forecast is trusted or its candidate is measured. Pure functions: the same input gives
// the same decision.
#ifndef CLIENT_POLICY_POLICY_H
#define CLIENT_POLICY_POLICY_H

#include "client/run/run.h"
#include "client/run/run_state.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

struct policy_view {
    const struct run_state
        *run_state; // forecasts of candidates 1 … last may be looked at, outcomes of 1 … visible
    uint64_t candidate;   // to be decided about
    uint64_t first, last; // its batch
    uint64_t visible;
    double incumbent_log2; // among the visible; 0: the baseline
};

#define POLICY_WINDOW 64 // forecasts that a candidate's is compared with

struct policy_decision {
    enum decision decision; // MEASURE, TRUST or AUDIT
    double propensity;      // of being measured
    double threshold;       // of P(improves), of policies that certify; NaN: none holds
    double confidence;      // the forecast's; NaN without one
    char reason[512];       // one sentence
};

struct policy {
    const char *name, *help;
    void (*decide)(const struct policy_view *view, struct policy_decision *ret);
    bool blind;       // it looks at no forecast
    bool discards;    // what is forecast to be poor costs no measurement, however much of it comes
    bool certifies;   // its threshold is the run state's certified one (client/policy/risk.h)
    bool replay_only; // how others do it, for replaying (client/policy/policy_published.c)
    uint64_t batch, wide; // see policy_batches; 0: it does not mind
};

extern const struct policy policy_published;

const struct policy *policy_find(const char *name); // NULL when there is none

// How many candidates are considered at a time (batch, wide of run_started): what was asked for becomes
// the policy's own round where it has one, and wide, where nothing was asked for (0), its preference or
// twice the batch.
void policy_batches(const struct policy *policy, uint64_t *batch, uint64_t *wide);

// What a forecast lets one expect beyond this log2 speedup: E(max(y - log2, 0)), 0 where the candidate
// is wrong. Shifted arithmetically, so that forecasts that were made before the incumbent changed need
// not be made again.
double policy_promise(const struct forecast *forecast, double log2);
// Probabilities that are some.
bool policy_usable(const struct forecast *forecast);
// Compares what the candidate promises beyond the incumbent, per second of the device that measuring it
// is expected to take, with the last POLICY_WINDOW candidates 1 … last that have a usable forecast of a
// model. What measuring takes is learnt from the visible outcomes, as a line in 2^-y. Returns the share of them that promise more (as much: counts half), and in
// *ret_compared how many there were.
double policy_standing(const struct policy_view *view, size_t *ret_compared);

#endif
