// How others search, for comparing: whole searches that do without our pipeline. What they measure is
// charged by replay/budget.h.
#ifndef REPLAY_PEERS_H
#define REPLAY_PEERS_H

#include "common/err.h"
#include "replay/catalogue.h"
#include "replay/orders.h"
#include "replay/player.h"
#include <stdint.h>

struct peer_search {
    const struct catalogue *catalogue;
    const char *variant;
    uint64_t seed;
    double budget_seconds;       // NaN: no limit
    const struct orders *orders; // NULL: none
};

struct peer {
    const char *name, *help;
    // A function of what it is given. *ret is written on success.
    int (*play)(const struct peer_search *search, struct player_outcome *ret, struct err *err);
};

const struct peer *peer_find(const char *name); // NULL when there is none

// Measures in the order that search->orders has for the variant, the space and the seed. Not in peer_find.
extern const struct peer peer_ordered;

// AutoTVM's rule, by what is known about the compiled candidate and its parameters, or by parameters
// alone (replay/peer_tvm.c).
extern const struct peer peer_tvm, peer_tvm_knobs;
// The best tenth by forecast (replay/peer_tenth.c).
extern const struct peer peer_tenth;

#endif
