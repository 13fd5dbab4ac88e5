// The part of a run's state that follows from asking for candidates. Only run_state.c includes
// this.
#ifndef CLIENT_RUN_RUN_STATE_ASKED_H
#define CLIENT_RUN_RUN_STATE_ASKED_H

#include "client/run/run_state.h"

// Adds what language models read and wrote, and its price, which may be NaN.
void run_state_add_tokens(struct run_state *run_state, uint64_t input, uint64_t output,
                          double cost);
// Applies an event, as run_state_apply.
MUST_CHECK int run_state_apply_asked(struct run_state *run_state, struct run_asked *event,
                                     struct err *err);
// The same for a question which proposals go first, asked and answered at these times.
MUST_CHECK int run_state_apply_ordered(struct run_state *run_state, const struct run_ordered *event,
                                       double at, struct err *err);
// Removes what has become this candidate from what is waiting.
void run_state_take_waiting(struct run_state *run_state, const struct run_proposed *proposed);
void run_state_release_waiting(struct run_state *run_state);
// Forgets the rounds of a batch that is proposed.
void run_state_forget_rounds(struct run_state *run_state);

#endif
