#include "client/propose/prospects.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

#define PARENTS 6         // best points whose neighbours are taken first
#define NEIGHBOUR_MAX 128 // of one point
#define SPREAD_DRAWS 32   // random points of which the least similar one is taken

// ---- the first points ----

// Where the points are that were proposed.
struct places {
    double (*at)[GENERATOR_AXIS_MAX]; // owned
    size_t count;
};

static struct places gather_places(const struct strategy_view *view, size_t more)
{
    uint64_t candidates = view->run_state->candidate_count;
    struct places places = {.at = xcalloc((size_t)candidates + more + 1, sizeof(*places.at))};
    for (uint64_t id = 1; id <= candidates; id++) {
        size_t point;
        if (strategy_point(view, id, &point)) {
            view->generator->ops->position(view->generator, point, places.at[places.count++]);
        }
    }
    return places;
}

// How many coordinates the position shares with all places together.
static size_t shared_coordinates(const struct places *places, size_t axes, const double *position)
{
    size_t shared = 0;
    for (size_t i = 0; i < places->count; i++) {
        for (size_t axis = 0; axis < axes; axis++) {
            shared += places->at[i][axis] == position[axis];
        }
    }
    return shared;
}

size_t prospects_spread(const struct strategy_view *view, size_t want, struct strategy_choice *out)
{
    bool *taken = strategy_taken(view);
    struct places places = gather_places(view, want);
    size_t axes = view->generator->axis_count, count = 0;
    for (; count < want; count++) {
        uint64_t slot = view->run_state->candidate_count + count + 1;
        size_t point, least = SIZE_MAX;
        double position[GENERATOR_AXIS_MAX] = {0};
        for (uint64_t draw = 0; draw < SPREAD_DRAWS; draw++) {
            if (!strategy_random(view, taken, slot * SPREAD_DRAWS + draw, &point)) {
                break;
            }
            taken[point] = false; // it is only looked at
            view->generator->ops->position(view->generator, point, position);
            size_t shared = shared_coordinates(&places, axes, position);
            if (shared < least) {
                least = shared;
                out[count] = (struct strategy_choice){.point = point};
                memcpy(places.at[places.count], position, sizeof(position));
            }
        }
        if (least == SIZE_MAX) {
            break;
        }
        taken[out[count].point] = true;
        places.count++;
    }
    free(places.at);
    free(taken);
    return count;
}

// ---- the points of a screening ----

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

// Adds the free neighbours of the parent's point, and marks them as taken. Returns how many there
// are now.
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
