// Options with known rewards and costs: how much is spent on each.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/bandit.h"
#include "common/mem.h"
#include "common/stats.h"
#include <math.h>

struct world {
    double chance[3], reward[3], cost[3];
};

// Makes `pulls` pulls. spent[i] becomes the cost of option i.
static void play(struct bandit *bandit, const struct world *world, uint64_t seed, size_t pulls,
                 double *spent)
{
    struct stats_rng rng;

    stats_rng_init(&rng, seed, 1);
    for (size_t i = 0; i < bandit->count; i++) {
        spent[i] = 0;
    }
    for (size_t n = 0; n < pulls; n++) {
        size_t option = bandit_choose(bandit, stats_rng_unit(&rng));
        bool hit = stats_rng_unit(&rng) < world->chance[option];

        assert_true(option < bandit->count);
        bandit_add(bandit, option, hit ? world->reward[option] : 0, world->cost[option]);
        spent[option] += world->cost[option];
    }
}

static void each_is_tried_first_the_heaviest_before_others(void **state)
{
    (void)state;
    struct bandit bandit;
    bandit_init(&bandit, 3, BANDIT_KEEP);
    assert_int_equal(bandit_choose(&bandit, 0.5), 0);
    bandit.option[2].weight = 2;
    assert_int_equal(bandit_choose(&bandit, 0.5), 2);
    bandit.option[2].pending = 1; // pulled, with an outcome that is not known yet
    assert_int_equal(bandit_choose(&bandit, 0.5), 0);
    bandit_add(&bandit, 0, 5, 1);
    assert_int_equal(bandit_choose(&bandit, 0.5), 1);
    bandit.option[1].gone = true;
    assert_int_not_equal(bandit_choose(&bandit, 0.5), 1);
    bandit.option[0].gone = bandit.option[2].gone = true;
    assert_true(bandit_choose(&bandit, 0.5) == SIZE_MAX);
    assert_true(bandit_choose(&bandit, 0) == SIZE_MAX);
}

static void what_improves_more_is_given_more(void **state)
{
    (void)state;
    const struct world world = {.chance = {0.05, 0.25, 0}, .reward = {1, 1, 1}, .cost = {1, 1, 1}};
    struct bandit bandit;
    double spent[3];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        bandit_init(&bandit, 3, BANDIT_KEEP);
        play(&bandit, &world, seed, 600, spent);
        assert_true(spent[1] > 2 * spent[0] && spent[1] > 3 * spent[2]);
        assert_true(spent[2] > 10); // no option is starved
        assert_true(bandit_share(&bandit, 1) > bandit_share(&bandit, 2));
        assert_true(fabs(bandit_share(&bandit, 0) + bandit_share(&bandit, 1) +
                         bandit_share(&bandit, 2) - 1) < 1e-9);
    }
}

static void equal_rewards_at_a_tenth_of_the_cost_are_preferred(void **state)
{
    (void)state;
    const struct world world = {.chance = {0.2, 0.2}, .reward = {1, 1}, .cost = {10, 1}};
    struct bandit bandit;
    double spent[3];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        bandit_init(&bandit, 2, BANDIT_KEEP);
        play(&bandit, &world, seed, 600, spent);
        assert_true(spent[1] > 400); // each pull of this option costs 1
    }
}

// An option that was the best is left when another one becomes the best.
static void it_follows_a_change(void **state)
{
    const struct world before = {.chance = {0.3, 0}, .reward = {1, 1}, .cost = {1, 1}},
                       after = {.chance = {0, 0.3}, .reward = {0.2, 0.2}, .cost = {1, 1}};

    (void)state;
    struct bandit bandit;
    double spent[3];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        bandit_init(&bandit, 2, BANDIT_KEEP);
        play(&bandit, &before, seed, 300, spent);
        assert_true(spent[0] > 200);
        play(&bandit, &after, seed, 700, spent);
        play(&bandit, &after, seed + 100, 300, spent);
        assert_true(spent[1] > 200);
    }
}

static void without_rewards_spending_follows_the_weights(void **state)
{
    (void)state;
    struct bandit bandit;
    bandit_init(&bandit, 2, BANDIT_KEEP);
    const struct world world = {.cost = {1, 5}};
    double spent[3];
    play(&bandit, &world, 1, 1000, spent);
    assert_true(spent[0] > 0.4 * (spent[0] + spent[1]) && spent[0] < 0.6 * (spent[0] + spent[1]));
    bandit_init(&bandit, 2, BANDIT_KEEP);
    bandit.option[0].weight = 3;
    play(&bandit, &(struct world){.cost = {1, 1}}, 1, 1000, spent);
    assert_true(spent[0] > 650 && spent[0] < 800);
}

static void pulls_without_an_outcome_count_as_spent(void **state)
{
    (void)state;
    struct bandit bandit;
    bandit_init(&bandit, 2, BANDIT_KEEP);
    bandit_add(&bandit, 0, 0, 1);
    bandit_add(&bandit, 1, 0, 1);
    bandit.option[0].pending = 8;
    assert_int_equal(bandit_choose(&bandit, 0.5), 1);
    bandit.option[0].pending = 0;
    bandit.option[1].pending = 8;
    assert_int_equal(bandit_choose(&bandit, 0.5), 0);
    bandit_credit(&bandit, 1, 4, 0); // an outcome that came later
    bandit.option[1].pending = 0;
    assert_int_equal(bandit_choose(&bandit, 0.5), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_tried_first_the_heaviest_before_others),
        cmocka_unit_test(what_improves_more_is_given_more),
        cmocka_unit_test(equal_rewards_at_a_tenth_of_the_cost_are_preferred),
        cmocka_unit_test(it_follows_a_change),
        cmocka_unit_test(without_rewards_spending_follows_the_weights),
        cmocka_unit_test(pulls_without_an_outcome_count_as_spent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
