// What a search has looked at: the candidates of its recorded space about which it had a forecast,
// or a decision, when it chose what to measure. Only a replay can say which of them would have
// improved on the incumbent, because the space has all results. replay/sim_worker.c tells what is
// asked, replay/sim_search.c reads the counts.
#ifndef REPLAY_LOOKS_H
#define REPLAY_LOOKS_H

#include "client/run/run_state.h"
#include "proto/messages.h"
#include "replay/recorded_space.h"
#include "replay/search_outcome.h"

struct looks;

// recorded is borrowed.
struct looks *looks_create(const struct recorded_space *recorded);
void looks_free(struct looks *looks); // NULL is fine

// The search asks for these forecasts, to choose by: each of the candidates is looked at, against
// the request's incumbent. A survey, which asks for the probabilities of margins, chooses nothing
// and does not count.
void looks_add(struct looks *looks, const struct forecast_request *request);

// Fills in the counts of what was looked at and of what was left, from looked_at to left_log2 of
// struct search_outcome. ret->best_log2 is given. The decisions of the run count as looks, too.
void looks_count(const struct looks *looks, const struct run_state *run_state,
                 struct search_outcome *ret);

#endif
