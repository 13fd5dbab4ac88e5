#include "client/propose/prospects.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

#define PARENTS 6         // best points whose neighbours are taken first
#define NEIGHBOUR_MAX 128 // of one point

// One of the best measured points.
struct best {
    uint64_t candidate;
    size_t point;
    double y; // log2 speedup
};

// Inserts one into the list of the PARENTS best, best first. Returns how many there are now.
static size_t insert(struct best *best, size_t count, const struct best *one)
{
    size_t at = count;
    while (at > 0 && best[at - 1].y < one->y) {
        at--;
    }
    if (at == PARENTS) {
        return count;
    }
    count += count < PARENTS;
    memmove(best + at + 1, best + at, (count - 1 - at) * sizeof(*best));
    best[at] = *one;
    return count;
}

static size_t find_best(const struct strategy_view *view, struct best *best)
{
    size_t count = 0;
    for (uint64_t id = 1; id <= view->visible; id++) {
        struct best one = {.candidate = id};
        if (strategy_point(view, id, &one.point) && strategy_score(view, id, &one.y)) {
            count = insert(best, count, &one);
        }
    }
    return count;
}

// Adds the free neighbours of a point, and marks them as taken. Returns how many there are now.
static size_t add_neighbours(const struct strategy_view *view, const struct best *of, bool *taken,
                             size_t count, size_t max, struct strategy_choice *out)
{
    size_t neighbour[NEIGHBOUR_MAX];
    size_t n =
        view->generator->ops->neighbours(view->generator, of->point, neighbour, NEIGHBOUR_MAX);
    for (size_t i = 0; i < n && count < max; i++) {
        if (!taken[neighbour[i]]) {
            taken[neighbour[i]] = true;
            out[count++] = (struct strategy_choice){.point = neighbour[i], .parent = of->candidate};
        }
    }
    return count;
}

size_t prospects_choose(const struct strategy_view *view, uint64_t draw, size_t max,
                        struct strategy_choice *out)
{
    bool *taken = strategy_taken(view);
    struct best best[PARENTS];
    size_t parents = find_best(view, best), count = 0;
    for (size_t i = 0; i < parents; i++) {
        count = add_neighbours(view, &best[i], taken, count, max / 2, out);
    }
    while (count < max && strategy_random(view, taken, draw * max + count, &out[count].point)) {
        out[count++].parent = 0;
    }
    free(taken);
    return count;
}
