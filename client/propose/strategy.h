// Which points to propose next, and which candidate a language model is to improve on. Called by
// the pipeline and by replays. A strategy is a pure function of its view of the run and the seed:
// called again with the same view it makes the same choice, so a search that was killed goes on as
// if nothing had happened. A strategy knows nothing of forecasts, daemons and the worker.
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
    // Every proposal in it counts as made, but only outcomes of candidates 1 to visible may be
    // looked at.
    const struct run_state *run_state;
    uint64_t visible;
    const struct generator *generator;
    uint64_t number; // of the generator in the run; points of other generators are left out
    unsigned given;  // bits 1 << number: generators of files, whose candidates the user has given
    uint64_t seed;
    bool discards; // The policy discards poor forecasts unmeasured, so random points are cheaper.
};

struct strategy_choice {
    size_t point;
    uint64_t parent; // the candidate whose neighbour the point is; 0: none
};

struct strategy {
    const char *name, *help; // as --strategy names and lists it
    // Chooses up to want different points that were not proposed before, in order. Returns how many
    // there are; fewer than want only when no more are left.
    size_t (*choose)(const struct strategy_view *view, size_t want, struct strategy_choice *out);
    // For a generator without points: the candidate that a new one is to be made from; 0: the
    // baseline. slot is the new candidate's number. The candidate may be one that the user has
    // given (strategy_given), of which no outcome may be looked at yet.
    uint64_t (*parent)(const struct strategy_view *view, uint64_t slot);
};

extern const struct strategy strategy_best_of_n, strategy_greedy, strategy_islands, strategy_puct;
// NULL when there is no strategy of this name.
const struct strategy *strategy_find(const char *name);

// ---- for strategies ----

// Whether the candidate is a point of the view's generator; *ret is then the point.
bool strategy_point(const struct strategy_view *view, uint64_t candidate, size_t *ret);
// How many candidates are points of the view's generator.
uint64_t strategy_proposed(const struct strategy_view *view);
// Which points were proposed already: an array of point_count flags, malloc'd.
bool *strategy_taken(const struct strategy_view *view);
// Draws a point that is not taken, uniformly, with the random numbers of (seed, draw), and marks it
// as taken. False when all are taken.
bool strategy_random(const struct strategy_view *view, bool *taken, uint64_t draw, size_t *ret);
// Gives the log2 speedup of a visible candidate that was measured and correct: of its second
// measurement when there is one, and of the candidate with the same object code when it was not
// measured for that reason. False for all others, and where the number is missing or not finite.
bool strategy_score(const struct strategy_view *view, uint64_t candidate, double *ret);
// A candidate and its log2 speedup.
struct strategy_ranked {
    uint64_t candidate;
    double y;
};
// Inserts one into the list of the `max` best, best first. Returns how many there are now.
size_t strategy_keep_best(struct strategy_ranked *best, size_t count, size_t max,
                          const struct strategy_ranked *one);
// Whether a visible candidate did not compile or was not correct.
bool strategy_failed(const struct strategy_view *view, uint64_t candidate);
// What a language model starts from as long as the strategy sees no correct candidate to start from
// (islands: on its island): one of the newest candidates that the user has given and that have not
// failed visibly, in turns; 0, the baseline, when there is none.
uint64_t strategy_given(const struct strategy_view *view, uint64_t slot);
// A uniform random number from 0 to 1 that depends on the seed, the stream (a constant for each
// use) and the slot alone.
double strategy_uniform(const struct strategy_view *view, uint64_t stream, uint64_t slot);
// Draws a neighbour of the point that is not taken, uniformly, and does not mark it. False when
// there is none.
bool strategy_neighbour(const struct strategy_view *view, const bool *taken, size_t point,
                        struct stats_rng *rng, size_t *ret);

#endif
