// Whether a forecast is trusted or its candidate is measured. Pure functions: the same input gives
// the same decision.
#ifndef CLIENT_POLICY_H
#define CLIENT_POLICY_H

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
};

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

#endif
