// The strategy `best-of-n`: points in random order, without replacement. It looks at no outcome.
// Other strategies are compared with it.
#include "client/propose/strategy.h"

#include <stdlib.h>

static size_t choose(const struct strategy_view *view, size_t want, struct strategy_choice *out)
{
    bool *taken = strategy_taken(view);
    size_t count = 0;
    while (count < want &&
           strategy_random(view, taken, view->run_state->candidate_count + count + 1,
                           &out[count].point)) {
        out[count++].parent = 0;
    }
    free(taken);
    return count;
}

static uint64_t parent(const struct strategy_view *view, uint64_t slot)
{
    (void)view;
    (void)slot;
    return 0;
}

const struct strategy strategy_best_of_n = {
    .name = "best-of-n",
    .help = "points in random order; a language model always starts from the baseline",
    .choose = choose,
    .parent = parent,
};
