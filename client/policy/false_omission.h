// What a search has missed: an estimate, from its audits, of how many of the candidates that it trusted
// to a forecast would have improved on the incumbent of their time. Pure.
#ifndef CLIENT_POLICY_MISSED_H
#define CLIENT_POLICY_MISSED_H

#include "client/policy/certify.h"
#include "client/run/run_state.h"

#define FALSE_OMISSION_CONFIDENCE 0.95

// See certify_false_omission.
struct false_omission false_omission_of_run(const struct run_state *run_state);

#endif
