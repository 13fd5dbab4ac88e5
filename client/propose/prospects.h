// The points of a search that screens: the first ones, from which the model learns, and those that
// a screening compares before any of them is compiled. Called by the pipeline
// (client/search/pipeline_screen.c). Pure: the same view and draw give the same points.
#ifndef CLIENT_PROPOSE_PROSPECTS_H
#define CLIENT_PROPOSE_PROSPECTS_H

#include "client/propose/strategy.h"
#include <stddef.h>
#include <stdint.h>

// Writes up to max different points that were not proposed before, with their parents, and returns
// how many. First come the free neighbours of the best visible points, at most half of max unless
// fewer points are free than max; the rest is drawn at random from all free points. draw is a
// number of its own for each call.
size_t prospects_choose(const struct strategy_view *view, uint64_t draw, size_t max,
                        struct strategy_choice *out);

// Chooses up to want different points that were not proposed before, and returns how many there
// are. Each is the one of several random points that shares the fewest coordinates with what was
// proposed so far, so that soon every value of every parameter has been tried about equally often,
// also one that few points of the space have. The generator has axes.
size_t prospects_spread(const struct strategy_view *view, size_t want, struct strategy_choice *out);

#endif
