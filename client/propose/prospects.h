// The points that a screening compares before any of them is compiled: neighbours of the best
// measured points, and random ones. Called by the pipeline (client/search/pipeline_screen.c). Pure:
// the same view and draw give the same points.
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

#endif
