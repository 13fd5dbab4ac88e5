// A made-up search space for tests, like that of a blocked matrix product: 480 points of five
// template parameters, with effects that multiply, interactions, a feature of the compiled code, a
// little noise, and a rule for which candidates are wrong.
#ifndef TESTS_WORKER_SPACE_H
#define TESTS_WORKER_SPACE_H

#include "common/stats.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define SPACE_POINTS 480

struct space_point {
    struct fact param[5], feature[2];
    double log2; // log2 speedup over the baseline
    bool correct;
};

static inline struct space_point space_point_at(size_t index, uint64_t seed)
{
    static const double mr[] = {1, 2, 4, 6, 8}, vw[] = {1, 4, 8, 16}, kb[] = {16, 64, 256},
                        nv[] = {1, 2};
    size_t i = index % 5, j = index / 5 % 4, k = index / 20 % 3, n = index / 60 % 2,
           pack = index / 120 % 4;
    struct stats_rng rng;
    stats_rng_init(&rng, seed, index);
    struct space_point point = {
        .param = {{(char *)"MR", mr[i]},
                  {(char *)"VW", vw[j]},
                  {(char *)"KB", kb[k]},
                  {(char *)"NV", nv[n]},
                  {(char *)"PACK", (double)pack}},
        .correct = pack != 3 || j == 0,
    };
    double registers = mr[i] * nv[n] + nv[n] + 1, spilled = fmax(registers - 16, 0);
    point.feature[0] = (struct fact){(char *)"insns", 120 + 9 * registers * (j == 0 ? 4 : 1)};
    point.feature[1] = (struct fact){(char *)"spills", spilled * 2};
    point.log2 = 0.5 + 0.9 * (double)j + 0.5 * log2(mr[i]) + 0.3 * log2(nv[n]) - 0.12 * spilled;
    point.log2 += (pack == 1 && k == 2 ? 0.4 : 0) - (pack == 2 ? 0.2 : 0) - (k == 0 ? 0.3 : 0);
    point.log2 += 0.05 * stats_rng_normal(&rng);
    return point;
}

// The candidate at a point, which it borrows from.
static inline struct candidate_facts space_candidate(struct space_point *point, uint64_t id)
{
    return (struct candidate_facts){.id = id,
                                    .features = point->feature,
                                    .features_count = 2,
                                    .params = point->param,
                                    .params_count = 5};
}

// The outcome of measuring the point. Borrows candidate.
static inline struct outcome space_outcome(const struct space_point *point,
                                           struct candidate_facts *candidate)
{
    struct outcome outcome;
    message_init(&outcome_message, &outcome);
    outcome.candidate = candidate;
    outcome.verdict = point->correct ? VERDICT_FASTER : VERDICT_WRONG;
    outcome.log2 = point->correct ? point->log2 : NAN;
    outcome.propensity = 1;
    return outcome;
}

// A random permutation of the points.
static inline void space_order(size_t order[static SPACE_POINTS], uint64_t seed)
{
    struct stats_rng rng;
    stats_rng_init(&rng, seed, 1);
    for (size_t i = 0; i < SPACE_POINTS; i++) {
        order[i] = i;
    }
    for (size_t i = SPACE_POINTS - 1; i > 0; i--) {
        size_t j = (size_t)stats_rng_below(&rng, i + 1), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

#endif
