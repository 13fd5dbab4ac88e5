// What a search's audits say of the candidates that they were drawn from, beside the truth. Only a
// replay knows the truth, because the space has all results. replay/sim_search.c reads it.
#ifndef REPLAY_AUDITS_H
#define REPLAY_AUDITS_H

#include "client/run/run_state.h"
#include "replay/recorded_space.h"
#include "replay/search_outcome.h"

// Fills in ret->audits. Audits that were drawn at the end stand for everything that could have been
// drawn then, and improvers beat the incumbent of then. Without any the population is what was
// trusted or audited, and improvers beat the incumbent of their decision.
void audits_count(const struct recorded_space *recorded, const struct run_state *run_state,
                  struct search_outcome *ret);

#endif
