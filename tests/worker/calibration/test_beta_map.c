#include "common/stats.h"
#include "worker/calibration/beta_map.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four headers above.
#include <cmocka.h>
#include <math.h>

#define COUNT 20000

static double stated[COUNT], weight[COUNT];
static bool event[COUNT];

// Makes points whose events follow this map.
static void make(const struct beta_map *truth, uint64_t seed)
{
    struct stats_rng rng;

    stats_rng_init(&rng, seed, 1);
    for (size_t i = 0; i < COUNT; i++) {
        stated[i] = 0.02 + 0.96 * stats_rng_unit(&rng);
        weight[i] = 1;
        event[i] = stats_rng_unit(&rng) < beta_map_apply(truth, stated[i]);
    }
}

static void many_outcomes_give_the_map_back(void **state)
{
    static const struct beta_map truths[] = {
        {1, 1, 0}, {0.4, 0.4, -0.5}, {2, 1.5, 0.3}, {0.5, 1.2, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(truths) / sizeof(truths[0]); i++) {
        make(&truths[i], i + 1);
        struct beta_map map;
        beta_map_fit(&map, &beta_map_identity, stated, weight, event, COUNT);
        assert_true(fabs(map.a - truths[i].a) < 0.12 && fabs(map.b - truths[i].b) < 0.12 &&
                    fabs(map.c - truths[i].c) < 0.12);
    }
}

static void no_outcome_leaves_the_prior_and_few_move_it_a_little(void **state)
{
    (void)state;
    const struct beta_map prior = {0.5, 0.7, -1};
    struct beta_map map;
    beta_map_fit(&map, &prior, stated, weight, event, 0);
    assert_true(map.a == prior.a && map.b == prior.b && map.c == prior.c);
    assert_true(fabs(beta_map_apply(&beta_map_identity, 0.3) - 0.3) < 1e-12);
    make(&(struct beta_map){1, 1, 0}, 9);
    beta_map_fit(&map, &prior, stated, weight, event, 3);
    assert_true(fabs(map.c - prior.c) < 1 && map.a > 0.2 && map.a < 1.2);
}

static void it_never_falls_and_never_says_certainly(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct stats_rng rng;

        stats_rng_init(&rng, seed, 2);
        // Events that contradict the stated probabilities, and events that are all alike.
        for (size_t i = 0; i < 60; i++) {
            stated[i] = seed % 3 == 0 ? 1 : stats_rng_unit(&rng);
            weight[i] = 20 * stats_rng_unit(&rng) + 1e-3;
            event[i] = seed % 2 == 0 ? stats_rng_unit(&rng) > stated[i] : true;
        }
        struct beta_map map;
        beta_map_fit(&map, &beta_map_identity, stated, weight, event, 60);
        assert_true(map.a >= 0 && map.b >= 0);
        double last = 0;
        for (double p = 0; p <= 1; p += 0.01) {
            double q = beta_map_apply(&map, p);

            assert_true(q > 0 && q < 1 && q >= last);
            last = q;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_outcomes_give_the_map_back),
        cmocka_unit_test(no_outcome_leaves_the_prior_and_few_move_it_a_little),
        cmocka_unit_test(it_never_falls_and_never_says_certainly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
