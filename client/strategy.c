#include "client/strategy.h"

#include "common/mem.h"
#include "common/stats.h"
#include <string.h>

#define STREAM_RANDOM 0x73747261ULL // separates these draws from other uses of the seed
#define TRIES 64

const struct strategy *strategy_find(const char *name)
{
    static const struct strategy *const all[] = {&strategy_best_of_n, &strategy_greedy};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}

bool *strategy_taken(const struct strategy_view *view)
{
    size_t count = view->generator->point_count;
    bool *taken = xcalloc(count, sizeof(*taken));
    for (size_t i = 0; i < view->fold->candidate_count; i++) {
        uint64_t point = view->fold->candidate[i].proposed.point; // plus 1
        if (point >= 1 && point <= count) {
            taken[point - 1] = true;
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
    // Nearly everything is taken: count what is left and take the n-th of that.
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
    const struct fold_candidate *c = &view->fold->candidate[candidate - 1];
    if (c->object_duplicate_of != 0) { // the same code has the same speed
        c = &view->fold->candidate[c->object_duplicate_of - 1];
    }
    const struct result *result = c->record != NULL ? c->record : c->result;
    if (candidate > view->visible || result == NULL || !verdict_is_ratio(result->verdict) ||
        result->speedup == NULL) {
        return false;
    }
    *ret = result->speedup->log2;
    return true;
}
