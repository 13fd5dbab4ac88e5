// Many replays at once: every variant on every space with every seed, spread over processes.
#ifndef REPLAY_TASKS_H
#define REPLAY_TASKS_H

#include "common/err.h"
#include "replay/catalogue.h"
#include "replay/peers.h"
#include "replay/player.h"
#include <stddef.h>
#include <stdint.h>

#define TASKS_VARIANTS_MAX 64

// One way to search.
struct variant {
    char name[64]; // "threshold/greedy"
    const char *policy, *strategy;
    bool surrogate;
    const struct peer *peer; // who searches instead of our pipeline, always alone; NULL: nobody
};

struct tasks {
    struct catalogue *const *space;
    size_t spaces;
    const struct variant *variant;
    size_t variants;
    const struct orders *orders; // for variants whose peer is peer_ordered
    uint64_t seeds, first_seed;
    uint64_t searches; // at the same time on the same devices, with seeds of their own
    struct sim_daemon_config sim_daemon;
    struct player_config common; // what variant, space and seed do not say
    double budget_share; // budget_seconds as a share of what measuring the space takes; NaN: not so
    uint64_t processes;
};

// Fills outcome[spaces x variants x seeds x searches], in this order. The error is the first task's that failed.
MUST_CHECK int tasks_run(const struct tasks *tasks, struct player_outcome *outcome,
                         struct err *err);

// Where in outcome a search is.
size_t tasks_index(const struct tasks *tasks, size_t space, size_t variant, uint64_t seed,
                   uint64_t search);
size_t tasks_count(const struct tasks *tasks);

#endif
