// What a run's events say about forecasts as a whole: the trust in its forecasters, looks back at
// what was trusted, and screenings. Only client/run/run_state.c calls this; others read the fields
// of the run state and run_state_trust.
#ifndef CLIENT_RUN_RUN_STATE_TRUST_H
#define CLIENT_RUN_RUN_STATE_TRUST_H

#include "client/run/run_state.h"
#include "common/err.h"

// Takes the parts of the event over. ERR_CORRUPT when it does not follow from the events before;
// nothing has changed then.
MUST_CHECK int run_state_apply_trusted(struct run_state *run_state, struct run_trusted *event,
                                       struct err *err);
// The same for a look back at trusted candidates.
MUST_CHECK int run_state_apply_looked_back(struct run_state *run_state,
                                           struct run_looked_back *event, double at,
                                           struct err *err);
// The same for a screening.
MUST_CHECK int run_state_apply_screened(struct run_state *run_state, struct run_screened *event,
                                        struct err *err);
void run_state_release_trust(struct run_state *run_state);

#endif
