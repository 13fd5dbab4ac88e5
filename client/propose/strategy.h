// Which points to propose next. A strategy is a pure function of what it may see of the run and the
// seed: called again with the same view it makes the same choice, which is what lets a killed
// search go on as if nothing had happened.
#ifndef CLIENT_PROPOSE_STRATEGY_H
#define CLIENT_PROPOSE_STRATEGY_H

#include "client/propose/generator.h"
#include "client/run/run_state.h"
#include "common/stats.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STRATEGY_DEFAULT "greedy"

struct strategy_view {
    const struct run_state *run_state; // every proposal in it counts as made …
    uint64_t visible; // … but only outcomes of candidates 1 … this may be looked at
    const struct generator *generator;
    uint64_t number; // of the generator in the run; points of others are not its points
    uint64_t seed;
    bool discards; // what is forecast to be poor costs no measurement: there may be more chance
};

struct strategy_choice {
    size_t point;
    uint64_t parent; // candidate whose neighbour it is, or 0
};

struct strategy {
    const char *name, *help;
    // Chooses up to want points that were not proposed before, all different, in order. Returns how
    // many; fewer than want only when there are no more.
    size_t (*choose)(const struct strategy_view *view, size_t want, struct strategy_choice *out);
    // The candidate that a new one is to be made from, where a generator has no points; 0: the baseline.
    // slot is the new one's number.
    uint64_t (*parent)(const struct strategy_view *view, uint64_t slot);
};

extern const struct strategy strategy_best_of_n, strategy_greedy, strategy_islands, strategy_puct;
const struct strategy *strategy_find(const char *name); // NULL when there is none

// For strategies: whether the candidate is a point of the view's generator, and which.
bool strategy_point(const struct strategy_view *view, uint64_t candidate, size_t *ret);
// How many candidates are.
uint64_t strategy_proposed(const struct strategy_view *view);
// Which points are taken, as point_count flags, malloc'd.
bool *strategy_taken(const struct strategy_view *view);
// A point that is not taken, drawn uniformly with (seed, draw); marks it. False when all are.
bool strategy_random(const struct strategy_view *view, bool *taken, uint64_t draw, size_t *ret);
// log2 speedup of a visible candidate that was measured and correct: of the replication when there
// is one. False for all others.
bool strategy_score(const struct strategy_view *view, uint64_t candidate, double *ret);
// Whether a visible candidate has an outcome without a score: it did not compile, or was not correct.
bool strategy_failed(const struct strategy_view *view, uint64_t candidate);
// A number from 0 to 1 that depends on the seed, the stream (what it is for) and the slot alone.
double strategy_uniform(const struct strategy_view *view, uint64_t stream, uint64_t slot);
// A free neighbour of the point, drawn uniformly; does not mark it. False when all are taken, or
// there are none.
bool strategy_neighbour(const struct strategy_view *view, const bool *taken, size_t point,
                        struct stats_rng *rng, size_t *ret);

#endif
