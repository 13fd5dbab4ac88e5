// Outcomes that are made up, of two variants on two spaces, for what only reads outcomes.
#ifndef TESTS_REPLAY_MADE_UP_H
#define TESTS_REPLAY_MADE_UP_H

#include "replay/tasks.h"
#include "tests/replay/toy.h"
#include <stdlib.h>

#define MADE_UP_SEEDS 4
#define MADE_UP_OUTCOMES (2 * 2 * MADE_UP_SEEDS)

struct made_up {
    struct recorded_space *space[2]; // "near" and "far"
    struct variant variant[2];       // "control" and "other"
    struct tasks tasks;
    struct search_outcome outcome[MADE_UP_OUTCOMES];
};

// All outcomes are of nothing found and nothing used.
static inline struct made_up *made_up_create(void)
{
    static const char *const names[] = {"near", "far"};
    struct made_up *m = xcalloc(1, sizeof(*m));

    for (size_t i = 0; i < 2; i++) {
        struct space space = toy_space();
        assert_int_equal(recorded_space_create(&m->space[i], &space, names[i], NULL), 0);
    }
    m->variant[0] = (struct variant){.name = "control", .policy = "all", .strategy = "greedy"};
    m->variant[1] = (struct variant){
        .name = "other", .policy = "risk", .strategy = "puct", .forecaster = SIM_FORECASTER_STATIC};
    m->tasks = (struct tasks){.space = m->space,
                              .spaces = 2,
                              .variant = m->variant,
                              .variants = 2,
                              .seeds = MADE_UP_SEEDS,
                              .first_seed = 10,
                              .searches = 1};
    return m;
}

static inline void made_up_free(struct made_up *m)
{
    recorded_space_free(m->space[0]);
    recorded_space_free(m->space[1]);
    free(m);
}

static inline struct search_outcome *made_up_outcome(struct made_up *m, size_t space,
                                                     size_t variant, uint64_t seed)
{
    return &m->outcome[tasks_index(&m->tasks, space, variant, seed, 0)];
}

// Sets the outcome of a search that found log2 with its only step, after `needed` of `given`
// seconds.
static inline void made_up_set(struct made_up *m, size_t space, size_t variant, uint64_t seed,
                               double log2, double needed, double given)
{
    struct search_outcome *o = made_up_outcome(m, space, variant, seed);

    *o = (struct search_outcome){.best_log2 = log2,
                                 .given_seconds = given,
                                 .device_seconds = given,
                                 .considered = 40,
                                 .measured = 10};
    search_outcome_add_step(
        o, &(struct search_step){
               .device_seconds = needed, .log2 = log2, .considered = 12, .measured = 4});
}

#endif
