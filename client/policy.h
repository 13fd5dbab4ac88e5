// Whether a forecast is trusted or its candidate is measured. Pure functions: the same input gives
// the same decision.
#ifndef CLIENT_POLICY_H
#define CLIENT_POLICY_H

#include "client/fold.h"
#include "client/run.h"
#include "proto/all.h"
#include <stdint.h>

struct policy_input {
    uint64_t candidate;
    uint64_t seed;                   // of the run, for the audit coin
    const struct forecast *forecast; // NULL: there is none
    const char *forecast_reason;     // why; may be NULL
    double confidence;               // τ
    double audit;                    // largest share of trusted candidates that is measured anyway
    double share;                    // of policy budget
    double standing;                 // share of the latest forecasts that promise more (policy_standing)
    size_t compared;                 // with so many forecasts, its own included
};

#define POLICY_WINDOW 64 // forecasts that a candidate's is compared with

struct policy_decision {
    enum decision decision; // MEASURE, TRUST or AUDIT
    double propensity;      // of being measured
    double confidence;      // the forecast's; NaN without one
    char reason[512];       // one sentence
};

struct policy {
    const char *name, *help;
    void (*decide)(const struct policy_input *input, struct policy_decision *ret);
};

const struct policy *policy_find(const char *name); // NULL when there is none

// What a forecast lets one expect beyond this log2 speedup: E(max(y - log2, 0)), 0 where the candidate
// is wrong. Shifted arithmetically, so that forecasts that were made before the incumbent changed need
// not be made again.
double policy_promise(const struct forecast *forecast, double log2);
// Compares a candidate's promise beyond the incumbent with those of the last POLICY_WINDOW candidates 1
// … last that have a usable forecast. Returns the share of them that promise more (as much: counts half), and in
// *ret_compared how many there were.
double policy_standing(const struct fold *fold, uint64_t candidate, uint64_t last, double incumbent,
                       size_t *ret_compared);

#endif
