#include "replay/compare.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdlib.h>

// Returns the mean, over the searches of one seed, of log2(final of variant / final of other).
static double difference(const struct tasks *t, const struct search_outcome *outcome, size_t space,
                         size_t variant, size_t other, uint64_t seed)
{
    double sum = 0;

    for (uint64_t search = 0; search < t->searches; search++) {
        sum += outcome[tasks_index(t, space, variant, seed, search)].best_log2 -
               outcome[tasks_index(t, space, other, seed, search)].best_log2;
    }
    return sum / (double)t->searches;
}

// Returns the differences of all spaces and seeds, [spaces x seeds], malloc'd.
static double *differences(const struct tasks *t, const struct search_outcome *outcome,
                           size_t variant, size_t other)
{
    double *ret = xcalloc(t->spaces * (size_t)t->seeds, sizeof(*ret));

    for (size_t space = 0; space < t->spaces; space++) {
        for (uint64_t seed = 0; seed < t->seeds; seed++) {
            ret[space * t->seeds + seed] = difference(t, outcome, space, variant, other, seed);
        }
    }
    return ret;
}

// Returns the mean over spaces of the mean over seeds. With a generator of random numbers, spaces
// and seeds are drawn with replacement; without one (NULL), each counts once.
static double mean_of(const double *x, size_t spaces, uint64_t seeds, struct stats_rng *rng)
{
    double sum = 0;

    for (size_t i = 0; i < spaces; i++) {
        size_t space = rng && spaces > 1 ? (size_t)stats_rng_below(rng, spaces) : i;
        double inner = 0;

        for (uint64_t j = 0; j < seeds; j++) {
            inner += x[space * seeds + (rng ? stats_rng_below(rng, seeds) : j)];
        }
        sum += inner / (double)seeds;
    }
    return sum / (double)spaces;
}

static struct compare_ratio ratio_of(const double *x, size_t spaces, uint64_t seeds, size_t variant)
{
    struct stats_rng rng;

    stats_rng_init(&rng, COMPARE_SEED, variant);
    double draw[COMPARE_DRAWS];
    for (size_t i = 0; i < COMPARE_DRAWS; i++) {
        draw[i] = mean_of(x, spaces, seeds, &rng);
    }
    stats_sort(draw, COMPARE_DRAWS);
    return (struct compare_ratio){.ratio = exp2(mean_of(x, spaces, seeds, NULL)),
                                  .lo = exp2(stats_quantile(draw, COMPARE_DRAWS, 0.025)),
                                  .hi = exp2(stats_quantile(draw, COMPARE_DRAWS, 0.975))};
}

struct compare_ratio compare_final(const struct tasks *t, const struct search_outcome *outcome,
                                   size_t variant, size_t other)
{
    double *x = differences(t, outcome, variant, other);
    struct compare_ratio ret = ratio_of(x, t->spaces, t->seeds, variant);

    free(x);
    return ret;
}

struct compare_ratio compare_on_space(const struct tasks *t, const struct search_outcome *outcome,
                                      size_t variant, size_t other, size_t space)
{
    double *x = differences(t, outcome, variant, other);
    struct compare_ratio ret = ratio_of(x + space * t->seeds, 1, t->seeds, variant);

    free(x);
    return ret;
}

// --- time

struct counting {
    double *share;
    size_t count, reached;
    uint64_t considered, measured;
};

static void count_pair(struct counting *c, const struct search_outcome *own,
                       const struct search_outcome *other, double slack_log2, enum compare_share of)
{
    double log2 = other->best_log2 - slack_log2, reached = search_outcome_reached(own, log2);
    double whole = of == COMPARE_OF_GIVEN ? other->given_seconds
                                          : search_outcome_reached(other, other->best_log2);
    const struct search_step *step = search_outcome_step(own, log2);

    c->share[c->count++] = whole > 0 ? reached / whole : reached > 0 ? INFINITY : 1;
    c->reached += isfinite(reached) ? 1 : 0;
    if (step) {
        c->considered += step->considered;
        c->measured += step->measured;
    }
}

// Returns the lower of two values in the middle, because infinite ones have no mean.
static double quartile(const double *sorted, size_t count, size_t which)
{
    return sorted[(count - 1) * which / 4];
}

struct compare_time compare_time(const struct tasks *t, const struct search_outcome *outcome,
                                 size_t variant, size_t other, double slack_log2,
                                 enum compare_share of)
{
    size_t all = t->spaces * (size_t)(t->seeds * t->searches);
    struct counting c = {.share = xcalloc(all, sizeof(*c.share))};

    for (size_t space = 0; space < t->spaces; space++) {
        for (uint64_t i = 0; i < t->seeds * t->searches; i++) {
            count_pair(&c, &outcome[tasks_index(t, space, variant, 0, i)],
                       &outcome[tasks_index(t, space, other, 0, i)], slack_log2, of);
        }
    }
    stats_sort(c.share, c.count);
    struct compare_time ret;
    for (size_t i = 0; i < 3; i++) {
        ret.quartile[i] = quartile(c.share, c.count, i + 1);
    }
    ret.reached = (double)c.reached / (double)c.count;
    ret.per_measured = c.measured > 0 ? (double)c.considered / (double)c.measured : NAN;
    free(c.share);
    return ret;
}
