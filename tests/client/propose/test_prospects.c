// The points that a screening compares: neighbours of the best first, then random ones, none twice
// and none that was proposed.
#include "client/propose/prospects.h"
#include "proto/verdict.h"
#include "tests/client/propose/made_view.h"

#define POINTS 64

static const char grid[] = "//@ tune A in (1, 2, 3, 4)\n//@ tune B in (1, 2, 3, 4)\n"
                           "//@ tune C in (1, 2, 3, 4)\nint x;\n";

static void assert_all_free_and_different(const struct made_view *made,
                                          const struct strategy_choice *choice, size_t count)
{
    bool seen[POINTS] = {false};
    for (size_t i = 0; i < count; i++) {
        assert_true(choice[i].point >= made->run_state.candidate_count);
        assert_true(choice[i].point < POINTS);
        assert_false(seen[choice[i].point]);
        seen[choice[i].point] = true;
    }
}

static void neighbours_of_the_best_come_first(void **state)
{
    (void)state;
    struct made_view made;
    made_view(&made, "tunable", grid, 3);
    made_view_measured(&made, 1, VERDICT_FASTER, 1.0);
    made_view_measured(&made, 2, VERDICT_SLOWER, -1.0);
    struct strategy_choice choice[20], again[20];
    assert_int_equal(prospects_choose(&made.view, 7, 20, choice), 20);
    assert_all_free_and_different(&made, choice, 20);
    size_t neighbour[16];
    size_t count = made.generator->ops->neighbours(made.generator, 1, neighbour, 16);
    size_t first = 0;
    for (size_t i = 0; i < count; i++) {
        first += neighbour[i] > 2; // points 0 to 2 were proposed
    }
    for (size_t i = 0; i < first; i++) {
        assert_int_equal(choice[i].parent, 2);
    }
    size_t with_parent = 0;
    for (size_t i = 0; i < 20; i++) {
        with_parent += choice[i].parent != 0;
    }
    assert_true(with_parent >= first && with_parent <= 10); // at most half are neighbours
    assert_int_equal(choice[19].parent, 0);
    assert_int_equal(prospects_choose(&made.view, 7, 20, again), 20);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(choice[i].point, again[i].point);
    }
    generator_free(made.generator);
}

static void a_small_space_is_compared_whole(void **state)
{
    (void)state;
    struct made_view made;
    struct strategy_choice choice[2 * POINTS];
    made_view(&made, "tunable", grid, 5);
    assert_int_equal(prospects_choose(&made.view, 1, 2 * POINTS, choice), POINTS - 5);
    assert_all_free_and_different(&made, choice, POINTS - 5);
    generator_free(made.generator);
}

// Every point of this space but two of 18 has A = 1.
static const char rare[] = "//@ tune B in (1, 2, 3, 4)\n//@ tune C in (1, 2, 3, 4)\n"
                           "//@ tune A in (1, 2) if A == 1 || (B == 4 && C > 2)\nint x;\n";

static size_t with_the_rare_value(uint64_t seed, bool spread)
{
    struct made_view made;
    struct strategy_choice choice[8];
    size_t rare_count = 0;
    made_view(&made, "tunable", rare, 0);
    made.view.seed = seed;
    assert_int_equal(made.generator->point_count, 18);
    assert_int_equal((spread ? prospects_spread : strategy_best_of_n.choose)(&made.view, 8, choice),
                     8);
    assert_all_free_and_different(&made, choice, 8);
    for (size_t i = 0; i < 8; i++) {
        double position[GENERATOR_AXIS_MAX];
        made.generator->ops->position(made.generator, choice[i].point, position);
        rare_count += position[2] > 0;
        assert_int_equal(choice[i].parent, 0);
    }
    generator_free(made.generator);
    return rare_count;
}

static void the_first_points_try_every_value(void **state)
{
    (void)state;
    size_t missed = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        assert_true(with_the_rare_value(seed, true) >= 1);
        missed += with_the_rare_value(seed, false) == 0;
    }
    assert_true(missed > 4); // by chance one of four has none
}

static void the_first_points_are_as_many_as_there_are(void **state)
{
    (void)state;
    struct made_view made;
    struct strategy_choice choice[POINTS];
    made_view(&made, "tunable", grid, 5);
    assert_int_equal(prospects_spread(&made.view, POINTS, choice), POINTS - 5);
    assert_all_free_and_different(&made, choice, POINTS - 5);
    generator_free(made.generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_of_the_best_come_first),
        cmocka_unit_test(a_small_space_is_compared_whole),
        cmocka_unit_test(the_first_points_try_every_value),
        cmocka_unit_test(the_first_points_are_as_many_as_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
