// Which generator of a search fills the next batch, and what each has brought and cost. Pure
// functions of the log: a search that was killed allots the same again.
//
// The choice is common/bandit.h's (discounted UCB, Garivier and Moulines 2011, on reward per cost).
// A pull is a candidate; its reward is the log2 by which it raised the incumbent, which only a
// replicated candidate does; its cost is in device-seconds:
//   what its measurements held the device, + ALLOCATION_COMPILE of its compilation's seconds, +
//   ALLOCATION_CANDIDATE_SECONDS, so that candidates which are never measured are not free;
// what a language model was paid for a batch is charged to its generator, a unit of the worker's
// currency as ALLOCATION_MONEY_SECONDS, and when its tokens have no price a token as
// ALLOCATION_TOKEN_SECONDS.
#ifndef CLIENT_POLICY_ALLOCATION_H
#define CLIENT_POLICY_ALLOCATION_H

#include "client/run/run_state.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALLOCATION_COMPILE 0.1 // compilers run beside the device
#define ALLOCATION_CANDIDATE_SECONDS 0.02
#define ALLOCATION_MONEY_SECONDS 1000.0 // a GPU at 3.60 an hour
#define ALLOCATION_TOKEN_SECONDS 0.001  // as if a million of them cost 1

// Of one generator.
struct allocation_share {
    uint64_t considered, measured;
    uint64_t improvements; // times that a candidate of it became the incumbent …
    double gain_log2;      // … and raised it by so much, together
    double device_seconds, compile_seconds;
    uint64_t tokens; // of its language model, when they were paid for
    double money;    // in the worker's currency
    double cost;     // of all this, in device-seconds
};

// Of candidates 1 … last; ret[count], by the generators' numbers.
void allocation_shares(const struct run_state *run_state, uint64_t last, size_t count,
                       struct allocation_share *ret);

// The number of the generator that fills the next places, from what candidates 1 … visible brought.
// planned[i]: candidates of the same batch that generator i is given already. gone[i]: it has none
// any more. slot, the number of the first candidate to come, and the seed decide what is left to
// chance. count when all are gone.
size_t allocation_choose(const struct run_state *run_state, uint64_t visible, size_t count,
                         const bool *gone, const uint64_t *planned, uint64_t slot);

#endif
