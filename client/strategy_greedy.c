// Climbs from the best measured points to their neighbours.
//
// The first START candidates are random. After that each slot is, with probability EXPLORE (a coin
// that depends on seed and slot alone), random again, and otherwise the most promising point among
// the neighbours of the PARENTS best measured ones. "Promising" is what a kernel regression over
// all measured points expects there: the mean of their log2 speedups, weighted by exp(-(distance /
// WIDTH)²), where each axis counts from 0 to 1. What failed counts as slower by PENALTY than the
// slowest. When all neighbours of all correct points are taken, and where points have no
// neighbours, everything is random, so the search can neither get stuck nor leave a point out for
// ever.
#include "client/strategy.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define START 16
#define EXPLORE 0.15
#define PARENTS 6
#define WIDTH 0.35
#define PENALTY 0.5
#define NEIGHBOUR_MAX 128
#define STREAM_COIN 0x67726565ULL

// A measured point.
struct sample {
    uint64_t candidate;
    size_t point;
    double y; // log2 speedup; for failures filled in later
    bool correct;
    double place[GENERATOR_AXIS_MAX];
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

// The visible outcomes, best first; *ret is malloc'd, *ret_correct of them are correct.
static size_t gather(const struct strategy_view *view, struct sample **ret, size_t *ret_correct)
{
    struct sample *sample = xcalloc((size_t)view->visible + 1, sizeof(*sample));
    size_t count = 0, correct = 0;
    double worst = 0;
    for (uint64_t id = 1; id <= view->visible; id++) {
        const struct fold_candidate *candidate = &view->fold->candidate[id - 1];
        struct sample *s = &sample[count];
        *s = (struct sample){.candidate = id, .point = (size_t)candidate->proposed.point - 1};
        s->correct = strategy_score(view, id, &s->y);
        bool failed = strategy_failed(view, id);
        if (candidate->proposed.point == 0 || s->point >= view->generator->point_count ||
            (!s->correct && !failed)) {
            continue;
        }
        view->generator->ops->place(view->generator, s->point, s->place);
        worst = s->correct && s->y < worst ? s->y : worst;
        correct += s->correct;
        count++;
    }
    for (size_t i = 0; i < count; i++) {
        if (!sample[i].correct) {
            sample[i].y = worst - PENALTY;
        }
    }
    qsort(sample, count, sizeof(*sample), by_y);
    *ret = sample;
    *ret_correct = correct;
    return count;
}

// What the measured points let one expect here.
static double expectation(const struct generator *generator, const struct sample *sample,
                          size_t count, size_t point)
{
    double place[GENERATOR_AXIS_MAX], sum = 0, weight_sum = 0;
    generator->ops->place(generator, point, place);
    for (size_t i = 0; i < count; i++) {
        double square = 0;
        for (size_t axis = 0; axis < generator->axis_count; axis++) {
            double difference = place[axis] - sample[i].place[axis];
            square += difference * difference;
        }
        double weight = exp(-square / (WIDTH * WIDTH)) + 1e-12;
        sum += weight * sample[i].y;
        weight_sum += weight;
    }
    return sum / weight_sum;
}

// The most promising free neighbour of the best points. Goes beyond PARENTS only when those have no
// free ones.
static bool climb(const struct strategy_view *view, const struct sample *sample, size_t count,
                  size_t correct, bool *taken, struct strategy_choice *ret)
{
    const struct generator *generator = view->generator;
    double best = -INFINITY;
    bool found = false;
    for (size_t i = 0; i < correct && (i < PARENTS || !found); i++) {
        size_t neighbour[NEIGHBOUR_MAX];
        size_t n = generator->ops->neighbours(generator, sample[i].point, neighbour, NEIGHBOUR_MAX);
        for (size_t j = 0; j < n; j++) {
            if (taken[neighbour[j]]) {
                continue;
            }
            double y = expectation(generator, sample, count, neighbour[j]);
            if (y > best) {
                best = y;
                *ret =
                    (struct strategy_choice){.point = neighbour[j], .parent = sample[i].candidate};
                found = true;
            }
        }
    }
    if (found) {
        taken[ret->point] = true;
    }
    return found;
}

static size_t choose(const struct strategy_view *view, size_t want, struct strategy_choice *out)
{
    bool *taken = strategy_taken(view);
    struct sample *sample;
    size_t correct, count = 0;
    size_t sample_count = gather(view, &sample, &correct);
    for (; count < want; count++) {
        uint64_t slot = view->fold->candidate_count + count + 1;
        double coin = strategy_coin(view, STREAM_COIN, slot);
        if (slot > START && coin >= EXPLORE &&
            climb(view, sample, sample_count, correct, taken, &out[count])) {
            continue;
        }
        out[count].parent = 0;
        if (!strategy_random(view, taken, slot, &out[count].point)) {
            break;
        }
    }
    free(sample);
    free(taken);
    return count;
}

struct ranked {
    uint64_t candidate;
    double y;
};

// Keeps the PARENTS best, best first; returns how many there are now.
static size_t rank(struct ranked *best, size_t count, struct ranked one)
{
    size_t at = count;
    while (at > 0 && best[at - 1].y < one.y) {
        at--;
    }
    if (at == PARENTS) {
        return count;
    }
    count += count < PARENTS;
    memmove(best + at + 1, best + at, (count - 1 - at) * sizeof(*best));
    best[at] = one;
    return count;
}

// One of the PARENTS best, each as often as the next; with probability EXPLORE the newest that
// failed, to be repaired, or the baseline.
static uint64_t parent(const struct strategy_view *view, uint64_t slot)
{
    double coin = strategy_coin(view, STREAM_COIN, slot);
    struct ranked best[PARENTS];
    size_t count = 0;
    uint64_t failed = 0;
    for (uint64_t id = 1; id <= view->visible; id++) {
        const struct fold_candidate *candidate = &view->fold->candidate[id - 1];
        struct ranked one = {.candidate = id};
        if (candidate->proposed.duplicate_of != 0 || candidate->object_duplicate_of != 0) {
            continue;
        }
        if (strategy_score(view, id, &one.y)) {
            count = rank(best, count, one);
        } else if (strategy_failed(view, id)) {
            failed = id;
        }
    }
    return count == 0 || coin < EXPLORE ? failed : best[slot % count].candidate;
}

const struct strategy strategy_greedy = {
    .name = "greedy",
    .help = "neighbours of the best measured points, mixed with random ones",
    .choose = choose,
    .parent = parent,
};
