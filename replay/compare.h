// One variant of a replay against another, in pairs of equal seeds.
#ifndef REPLAY_COMPARE_H
#define REPLAY_COMPARE_H

#include "replay/tasks.h"
#include <stddef.h>

#define COMPARE_DRAWS 2000 // of a bootstrap
#define COMPARE_SEED 1

struct compare_ratio {
    double ratio, lo, hi; // with the 95 % interval of a bootstrap
};

// Geometric mean over spaces and seeds of (final speedup of the variant / of the other); the bootstrap draws
// spaces and, within them, seeds.
struct compare_ratio compare_final(const struct tasks *tasks, const struct player_outcome *outcome,
                                   size_t variant, size_t other);
// The same on one space; the bootstrap draws seeds.
struct compare_ratio compare_on_space(const struct tasks *tasks,
                                      const struct player_outcome *outcome, size_t variant,
                                      size_t other, size_t space);

// Device-seconds until the variant had the other's final result of the same seed, or one less than that by no
// more than slack_log2, as a share: of what the other was given, or of what the other itself needed.
enum compare_share { COMPARE_OF_GIVEN, COMPARE_OF_NEEDED };
struct compare_time {
    double quartile[3]; // of the searches; infinite: never
    double reached;     // share of searches that had it
    double
        per_measured; // considered over measured candidates until then, of all that had it; NaN: none
};
struct compare_time compare_time(const struct tasks *tasks, const struct player_outcome *outcome,
                                 size_t variant, size_t other, double slack_log2,
                                 enum compare_share of);

#endif
