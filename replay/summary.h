// What many replays say together: a table per space, and each arm against the first, the control, with
// intervals from a bootstrap over spaces and, within them, seeds.
#ifndef REPLAY_SUMMARY_H
#define REPLAY_SUMMARY_H

#include "replay/tasks.h"
#include <stdio.h>

#define SUMMARY_DRAWS 2000 // of the bootstrap
#define SUMMARY_SEED 1

struct summary_ratio {
    double ratio, lo, hi; // with the 95 % interval
};

// Geometric mean over spaces and seeds of (final speedup of the arm / of the control), same seeds paired.
struct summary_ratio summary_final(const struct tasks *tasks, const struct player_outcome *outcome,
                                   size_t arm);

void summary_print(const struct tasks *tasks, const struct player_outcome *outcome, FILE *out);
// One JSON object per search and line.
void summary_json(const struct tasks *tasks, const struct player_outcome *outcome, FILE *out);

#endif
