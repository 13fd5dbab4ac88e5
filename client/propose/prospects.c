#include "client/propose/prospects.h"

#include "common/mem.h"
#include <stdlib.h>

#define PARENTS 6         // best points whose neighbours are taken first
#define NEIGHBOUR_MAX 128 // of one point

static size_t find_best(const struct strategy_view *view, struct strategy_ranked *best)
{
    size_t count = 0;
    for (uint64_t id = 1; id <= view->visible; id++) {
        struct strategy_ranked one = {.candidate = id};
        size_t point;
        if (strategy_point(view, id, &point) && strategy_score(view, id, &one.y)) {
            count = strategy_keep_best(best, count, PARENTS, &one);
        }
    }
    return count;
}

// Adds the free neighbours of the parent's point, and marks them as taken. Returns how many there are now.
static size_t add_neighbours(const struct strategy_view *view, uint64_t parent, bool *taken,
                             size_t count, size_t max, struct strategy_choice *out)
{
    size_t neighbour[NEIGHBOUR_MAX], point = 0;
    (void)strategy_point(view, parent, &point);
    size_t n = view->generator->ops->neighbours(view->generator, point, neighbour, NEIGHBOUR_MAX);
    for (size_t i = 0; i < n && count < max; i++) {
        if (!taken[neighbour[i]]) {
            taken[neighbour[i]] = true;
            out[count++] = (struct strategy_choice){.point = neighbour[i], .parent = parent};
        }
    }
    return count;
}

size_t prospects_choose(const struct strategy_view *view, uint64_t draw, size_t max,
                        struct strategy_choice *out)
{
    bool *taken = strategy_taken(view);
    struct strategy_ranked best[PARENTS];
    size_t parents = find_best(view, best), count = 0;
    for (size_t i = 0; i < parents; i++) {
        count = add_neighbours(view, best[i].candidate, taken, count, max / 2, out);
    }
    while (count < max && strategy_random(view, taken, draw * max + count, &out[count].point)) {
        out[count++].parent = 0;
    }
    free(taken);
    return count;
}
