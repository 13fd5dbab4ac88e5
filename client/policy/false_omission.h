// The false omission rate of a search: an estimate, from its audits, of how many of the candidates
// that were discarded because of their forecast would have improved on the incumbent of their time.
// Called by summaries and reports. A pure function of the run state.
#ifndef CLIENT_POLICY_FALSE_OMISSION_H
#define CLIENT_POLICY_FALSE_OMISSION_H

#include "client/policy/certify.h"
#include "client/run/run_state.h"

#define FALSE_OMISSION_CONFIDENCE 0.9 // of the upper bound

// Where audits were drawn at the end, certify_draws of them: the share of what had not been
// measured by then that improves on the incumbent of then. Otherwise certify_false_omission over
// all candidates of the run that were trusted or audited.
struct false_omission false_omission_of_run(const struct run_state *run_state);

#endif
