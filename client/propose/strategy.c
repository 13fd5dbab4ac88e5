#include "client/propose/strategy.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <string.h>

#define STREAM_RANDOM 0x73747261ULL // separates these draws from other uses of the seed
#define TRIES 64                    // draws before the free points are counted
#define NEIGHBOUR_MAX 128           // of one point
#define GIVEN_MAX 16                // candidates of the user that are started from before outcomes

const struct strategy *strategy_find(const char *name)
{
    static const struct strategy *const all[] = {&strategy_best_of_n, &strategy_greedy,
                                                 &strategy_islands, &strategy_puct};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}

bool strategy_point(const struct strategy_view *view, uint64_t candidate, size_t *ret)
{
    const struct run_proposed *proposed = &view->run_state->candidate[candidate - 1].proposed;
    if (proposed->generator != view->number || proposed->point == 0 ||
        proposed->point > view->generator->point_count) {
        return false;
    }
    *ret = (size_t)proposed->point - 1;
    return true;
}

uint64_t strategy_proposed(const struct strategy_view *view)
{
    uint64_t made = 0;
    size_t point;
    for (uint64_t id = 1; id <= view->run_state->candidate_count; id++) {
        made += strategy_point(view, id, &point) &&
                view->run_state->candidate[id - 1].proposed.again == 0;
    }
    return made;
}

bool *strategy_taken(const struct strategy_view *view)
{
    bool *taken = xcalloc(view->generator->point_count, sizeof(*taken));
    size_t point;
    for (uint64_t id = 1; id <= view->run_state->candidate_count; id++) {
        if (strategy_point(view, id, &point)) {
            taken[point] = true;
        }
    }
    return taken;
}

bool strategy_random(const struct strategy_view *view, bool *taken, uint64_t draw, size_t *ret)
{
    size_t count = view->generator->point_count, left = 0;
    struct stats_rng rng;
    stats_rng_init(&rng, view->seed ^ STREAM_RANDOM, draw);
    for (size_t i = 0; i < TRIES; i++) {
        size_t point = (size_t)stats_rng_below(&rng, count);
        if (!taken[point]) {
            taken[point] = true;
            *ret = point;
            return true;
        }
    }
    // Nearly all points are taken: count the free ones and draw one of these.
    for (size_t i = 0; i < count; i++) {
        left += !taken[i];
    }
    if (left == 0) {
        return false;
    }
    size_t skip = (size_t)stats_rng_below(&rng, left), point = 0;
    while (taken[point] || skip > 0) {
        skip -= !taken[point];
        point++;
    }
    taken[point] = true;
    *ret = point;
    return true;
}

bool strategy_score(const struct strategy_view *view, uint64_t candidate, double *ret)
{
    const struct run_state_candidate *c = &view->run_state->candidate[candidate - 1];
    if (c->object_duplicate_of != 0) { // it was not measured, since the same code was
        c = &view->run_state->candidate[c->object_duplicate_of - 1];
    }
    const struct result *result = c->record ? c->record : c->result;
    if (candidate > view->visible || !result || !verdict_is_ratio(result->verdict) ||
        !result->speedup || !isfinite(result->speedup->log2)) {
        return false;
    }
    *ret = result->speedup->log2;
    return true;
}

size_t strategy_keep_best(struct strategy_ranked *best, size_t count, size_t max,
                          const struct strategy_ranked *one)
{
    size_t at = count;
    while (at > 0 && best[at - 1].y < one->y) {
        at--;
    }
    if (at == max) {
        return count;
    }
    count += count < max;
    memmove(best + at + 1, best + at, (count - 1 - at) * sizeof(*best));
    best[at] = *one;
    return count;
}

bool strategy_failed(const struct strategy_view *view, uint64_t candidate)
{
    const struct run_state_candidate *c = &view->run_state->candidate[candidate - 1];
    double ignored;
    return candidate <= view->visible && !strategy_score(view, candidate, &ignored) &&
           (c->result || (c->compiled && c->compiled->verdict != VERDICT_NONE));
}

uint64_t strategy_given(const struct strategy_view *view, uint64_t slot)
{
    uint64_t given[GIVEN_MAX];
    size_t count = 0;
    for (uint64_t id = view->run_state->candidate_count; id > 0 && count < GIVEN_MAX; id--) {
        const struct run_proposed *proposed = &view->run_state->candidate[id - 1].proposed;
        bool is_given = proposed->generator < RUN_GENERATORS_MAX &&
                        (view->given >> proposed->generator & 1) != 0;
        if (is_given && proposed->duplicate_of == 0 && !strategy_failed(view, id)) {
            given[count++] = id;
        }
    }
    return count > 0 ? given[slot % count] : 0;
}

double strategy_uniform(const struct strategy_view *view, uint64_t stream, uint64_t slot)
{
    return (double)(stats_philox(view->seed, stream, slot) >> 11) * 0x1p-53;
}

bool strategy_neighbour(const struct strategy_view *view, const bool *taken, size_t point,
                        struct stats_rng *rng, size_t *ret)
{
    const struct generator *generator = view->generator;
    size_t neighbour[NEIGHBOUR_MAX], free_count = 0;
    size_t count = generator->ops->neighbours(generator, point, neighbour, NEIGHBOUR_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!taken[neighbour[i]]) {
            neighbour[free_count++] = neighbour[i];
        }
    }
    if (free_count == 0) {
        return false;
    }
    *ret = neighbour[stats_rng_below(rng, free_count)];
    return true;
}
