// The strategy `greedy`: climbs from the best measured points to their neighbours.
//
// The first START candidates are random points. After that each slot gets a random point with
// probability EXPLORE, or EXPLORE_DISCARDING where the policy discards poor forecasts. That draw
// depends on the seed and the slot alone. Every other slot gets the neighbour of the PARENTS best
// measured points that has the highest expected speedup.
//
// The expectation is a kernel regression over measured points: the mean of their log2 speedups,
// weighted by exp(-(distance / WIDTH)²), where each axis runs from 0 to 1. A point that failed
// counts as slower by PENALTY than the slowest correct one.
//
// When all neighbours of all correct points are taken, and where points have no neighbours, all
// points are random. So the search can neither get stuck nor leave a point out for ever.
#include "client/propose/strategy.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdlib.h>

#define START 16
#define EXPLORE 0.15
#define EXPLORE_DISCARDING 0.4
#define PARENTS 6
#define WIDTH 0.35
#define PENALTY 0.5
#define MEMORY 1024       // measured points that the regression looks at
#define NEIGHBOUR_MAX 128 // of one point
#define STREAM_COIN 0x67726565ULL

// A measured point.
struct sample {
    uint64_t candidate;
    size_t point;
    double y; // log2 speedup; failures get one when the slowest correct point is known
    bool correct;
    double position[GENERATOR_AXIS_MAX];
};

static int by_y(const void *a, const void *b)
{
    const struct sample *left = a, *right = b;
    if (left->correct != right->correct) {
        return left->correct ? -1 : 1;
    }
    if (left->correct && left->y != right->y) {
        return left->y > right->y ? -1 : 1;
    }
    return left->candidate < right->candidate ? -1 : 1;
}

// Keeps the best MEMORY / 2 samples and as many evenly spaced ones of the others, so that a choice
// takes the same time however long the search is. Returns how many samples are left; *correct of
// them are correct.
static size_t thin(struct sample *sample, size_t count, size_t *correct)
{
    size_t kept = MEMORY / 2, right = 0;
    for (size_t i = 0; i < MEMORY / 2 && count > MEMORY; i++) {
        sample[kept++] = sample[MEMORY / 2 + i * (count - MEMORY / 2) / (MEMORY / 2)];
    }
    count = count > MEMORY ? kept : count;
    while (right < count && sample[right].correct) {
        right++;
    }
    *correct = right;
    return count;
}

// Collects the visible outcomes, best first, and returns how many there are. *ret is malloc'd, and
// *ret_correct of them are correct.
static size_t gather(const struct strategy_view *view, struct sample **ret, size_t *ret_correct)
{
    struct sample *sample = xcalloc((size_t)view->visible + 1, sizeof(*sample));
    size_t count = 0;
    double worst = 0;
    for (uint64_t id = 1; id <= view->visible; id++) {
        struct sample *s = &sample[count];
        *s = (struct sample){.candidate = id};
        s->correct = strategy_score(view, id, &s->y);
        if (!strategy_point(view, id, &s->point) || (!s->correct && !strategy_failed(view, id))) {
            continue;
        }
        view->generator->ops->position(view->generator, s->point, s->position);
        worst = s->correct && s->y < worst ? s->y : worst;
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        if (!sample[i].correct) {
            sample[i].y = worst - PENALTY;
        }
    }
    qsort(sample, count, sizeof(*sample), by_y);
    *ret = sample;
    return thin(sample, count, ret_correct);
}

// The log2 speedup that the measured points let one expect at this point.
static double expectation(const struct generator *generator, const struct sample *sample,
                          size_t count, size_t point)
{
    double position[GENERATOR_AXIS_MAX], sum = 0, weight_sum = 0;
    generator->ops->position(generator, point, position);
    for (size_t i = 0; i < count; i++) {
        double square = 0;
        for (size_t axis = 0; axis < generator->axis_count; axis++) {
            double difference = position[axis] - sample[i].position[axis];
            square += difference * difference;
        }
        double weight = exp(-square / (WIDTH * WIDTH)) + 1e-12;
        sum += weight * sample[i].y;
        weight_sum += weight;
    }
    return sum / weight_sum;
}

// A neighbour of one of the best points.
struct prospect {
    struct strategy_choice choice;
    double y; // expected log2 speedup
};

struct prospects {
    struct prospect *prospect; // owned
    size_t count, room;        // used and allocated
};

// Adds the neighbours of sample `of` that are not known yet, and marks them as known.

static void add_neighbours(struct prospects *to, const struct generator *generator,
                           const struct sample *sample, size_t count, const struct sample *of,
                           bool *known)
{
    size_t neighbour[NEIGHBOUR_MAX];
    size_t n = generator->ops->neighbours(generator, of->point, neighbour, NEIGHBOUR_MAX);
    for (size_t i = 0; i < n; i++) {
        if (known[neighbour[i]]) {
            continue;
        }
        known[neighbour[i]] = true;
        if (to->count == to->room) {
            to->room = to->room > 0 ? 2 * to->room : NEIGHBOUR_MAX;
            to->prospect = xrealloc(to->prospect, to->room, sizeof(*to->prospect));
        }
        to->prospect[to->count++] =
            (struct prospect){.choice = {.point = neighbour[i], .parent = of->candidate},
                              .y = expectation(generator, sample, count, neighbour[i])};
    }
}

// Takes the free prospect with the highest expectation. False when none is free.
static bool pick(const struct prospects *from, bool *taken, struct strategy_choice *ret)
{
    const struct prospect *best = NULL;
    for (size_t i = 0; i < from->count; i++) {
        const struct prospect *prospect = &from->prospect[i];
        if (!taken[prospect->choice.point] && (!best || prospect->y > best->y)) {
            best = prospect;
        }
    }
    if (!best) {
        return false;
    }
    *ret = best->choice;
    taken[ret->point] = true;
    return true;
}

static size_t choose(const struct strategy_view *view, size_t want, struct strategy_choice *out)
{
    bool *taken = strategy_taken(view), *known = strategy_taken(view);
    struct prospects prospects = {0};
    struct sample *sample;
    size_t correct, parents = 0, count = 0, learnt = gather(view, &sample, &correct);
    uint64_t made = strategy_proposed(view);
    for (; count < want; count++) {
        uint64_t slot = view->run_state->candidate_count + count + 1;
        bool found = false;
        if (made + count >= START && strategy_uniform(view, STREAM_COIN, slot) >=
                                         (view->discards ? EXPLORE_DISCARDING : EXPLORE)) {
            // Further samples become parents only when the best PARENTS have no free neighbours.
            for (; parents < correct && parents < PARENTS; parents++) {
                add_neighbours(&prospects, view->generator, sample, learnt, &sample[parents],
                               known);
            }
            while (!(found = pick(&prospects, taken, &out[count])) && parents < correct) {
                add_neighbours(&prospects, view->generator, sample, learnt, &sample[parents++],
                               known);
            }
        }
        out[count].parent = found ? out[count].parent : 0;
        if (!found && !strategy_random(view, taken, slot, &out[count].point)) {
            break;
        }
    }
    free(prospects.prospect);
    free(sample);
    free(taken);
    free(known);
    return count;
}

// One of the PARENTS best candidates, in turns. With probability EXPLORE it is the newest candidate
// that failed, so that it is repaired, or the baseline when none failed. Before there are any it is
// one that the user has given.
static uint64_t parent(const struct strategy_view *view, uint64_t slot)
{
    double coin = strategy_uniform(view, STREAM_COIN, slot);
    struct strategy_ranked best[PARENTS];
    size_t count = 0;
    uint64_t failed = 0;
    for (uint64_t id = 1; id <= view->visible; id++) {
        const struct run_state_candidate *candidate = &view->run_state->candidate[id - 1];
        struct strategy_ranked one = {.candidate = id};
        if (candidate->proposed.duplicate_of != 0 || candidate->object_duplicate_of != 0) {
            continue;
        }
        if (strategy_score(view, id, &one.y)) {
            count = strategy_keep_best(best, count, PARENTS, &one);
        } else if (strategy_failed(view, id)) {
            failed = id;
        }
    }
    if (count == 0 && failed == 0) {
        return strategy_given(view, slot);
    }
    return count == 0 || coin < EXPLORE ? failed : best[slot % count].candidate;
}

const struct strategy strategy_greedy = {
    .name = "greedy",
    .help = "neighbours of the best measured points, mixed with random ones",
    .choose = choose,
    .parent = parent,
};
