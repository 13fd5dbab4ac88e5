// What a search has missed: an estimate, from its audits, of how many of the candidates that it trusted
// to a forecast would have improved on the incumbent of their time. Pure.
#ifndef CLIENT_POLICY_MISSED_H
#define CLIENT_POLICY_MISSED_H

#include "client/policy/certify.h"
#include "client/run/run_state.h"

#define MISSED_CONFIDENCE 0.95

// See certify_missed.
struct certify_missed missed_of(const struct run_state *run_state);

#endif
