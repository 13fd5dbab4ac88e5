// The part of a run's state that follows from candidates that are put off. Only run_state.c
// includes this.
#ifndef CLIENT_RUN_RUN_STATE_PUT_OFF_H
#define CLIENT_RUN_RUN_STATE_PUT_OFF_H

#include "client/run/run_state.h"

// Applies an event, as run_state_apply.
MUST_CHECK int run_state_apply_put_off(struct run_state *run_state, const struct run_put_off *event,
                                       struct err *err);
// Whether a proposal may go on in the stead of the candidate that it names, if any. ERR_CORRUPT
// when it may not.
MUST_CHECK int run_state_check_again(const struct run_state *run_state,
                                     const struct run_proposed *event, struct err *err);
// Counts the last candidate, or hands it what is known of the one in whose stead it goes on.
void run_state_go_on(struct run_state *run_state);

#endif
