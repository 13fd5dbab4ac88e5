// The part of the run state that says how the search came to its end: surveys and the play-off.
// run_state.c alone calls this.
#ifndef CLIENT_RUN_RUN_STATE_END_H
#define CLIENT_RUN_RUN_STATE_END_H

#include "client/run/run_state.h"

// Applies one event of the end, as run_state_apply does.
MUST_CHECK int run_state_apply_end(struct run_state *run_state, struct run_event *event,
                                   struct err *err);
// Forgets the last survey and play-off; the games stay.
void run_state_clear_end(struct run_state *run_state);
void run_state_release_end(struct run_state *run_state);

#endif
