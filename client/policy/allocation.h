// Which generator of a search fills the next places of a batch, and what each generator has
// brought and cost so far. Called by the pipeline (client/search/) and by reports. Everything here
// is a pure function of the run's events, so that a search that was killed allocates the same
// again. It knows nothing of daemons and of how generators make candidates.
//
// The choice is that of common/bandit.h: discounted UCB (Garivier and Moulines 2011) on reward per
// cost. One pull is one candidate. Its reward is the log2 by which it raised the incumbent, which
// only a candidate that was measured twice can do. Its cost, in device-seconds, is that of
// compiling and measuring it, by the search's weights (client/policy/costs.h), and
// ALLOCATION_CANDIDATE_SECONDS, so that candidates that are never measured are not free. What a
// language model was paid for a batch, or its tokens where they have no price, is charged to its
// generator by the same weights.
#ifndef CLIENT_POLICY_ALLOCATION_H
#define CLIENT_POLICY_ALLOCATION_H

#include "client/run/run_state.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOCATION_CANDIDATE_SECONDS 0.02

// What one generator has brought and cost.
struct allocation_share {
    uint64_t considered;    // its candidates, duplicates included
    uint64_t measured;      // its candidates that have a result
    uint64_t improvements;  // how often one of its candidates became the incumbent
    double gain_log2;       // sum of the log2 by which they raised the incumbent
    double device_seconds;  // that its measurements held a device
    double compile_seconds; // of its compilations
    uint64_t tokens;        // of its language model, when they were paid for
    double money;           // in the worker's currency
    double cost;            // of all this, in device-seconds
};

// Fills ret[0 ... count - 1], indexed by the generators' numbers, from candidates 1 to last.
void allocation_shares(const struct run_state *run_state, uint64_t last, size_t count,
                       struct allocation_share *ret);

// Returns the number of the generator that fills the next places, judged by the outcomes of
// candidates 1 to visible. planned[i] is how many places of the same batch generator i has been
// given already. gone[i] says that generator i has no candidates left. slot is the number of the
// first candidate to come; it and the run's seed decide ties and draws. Returns count when all
// generators are gone.
size_t allocation_choose(const struct run_state *run_state, uint64_t visible, size_t count,
                         const bool *gone, const uint64_t *planned, uint64_t slot);

#endif
