// Compares one variant of a replay with another, in pairs of equal spaces and seeds. Pure functions
// of the outcomes; the summaries print what they return.
#ifndef REPLAY_COMPARE_H
#define REPLAY_COMPARE_H

#include "replay/tasks.h"
#include <stddef.h>

#define COMPARE_DRAWS 2000 // draws of a bootstrap
#define COMPARE_SEED 1

struct compare_ratio {
    double ratio, lo, hi; // lo and hi are the 95 % interval of a bootstrap
};

// Returns the geometric mean, over spaces and seeds, of the final speedup of `variant` over that of
// `other`. The bootstrap draws spaces and, within them, seeds.
struct compare_ratio compare_final(const struct tasks *tasks, const struct search_outcome *outcome,
                                   size_t variant, size_t other);
// The same on one space; the bootstrap draws seeds.
struct compare_ratio compare_on_space(const struct tasks *tasks,
                                      const struct search_outcome *outcome, size_t variant,
                                      size_t other, size_t space);

// What the device time of `variant` is divided by.
enum compare_share {
    COMPARE_OF_GIVEN,  // the device time that `other` was given
    COMPARE_OF_NEEDED, // the device time that `other` needed for its final result
};

struct compare_time {
    double quartile[3];  // of the shares of all searches; infinite: never reached
    double reached;      // share of searches that reached the result
    double per_measured; // considered over measured candidates until then; NaN: never reached
};
// Compares device times until `variant` had the final result of `other` with the same seed, or a
// speedup that is less by at most slack_log2.
struct compare_time compare_time(const struct tasks *tasks, const struct search_outcome *outcome,
                                 size_t variant, size_t other, double slack_log2,
                                 enum compare_share of);

#endif
