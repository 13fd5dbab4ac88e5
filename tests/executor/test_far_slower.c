// What ends a paired timing before its first look.
#include "tests/executor/paired_timing_fixture.h"

static void slow_down(struct fixture *f, double first, double second)
{
    f->timing.case_count = 2;
    f->timing.cases[0].weight = f->timing.cases[1].weight = 0.5;
    for (size_t i = 0; i < 2; i++) {
        f->second_ns[0][i] = f->first_ns[i] * first;
        f->second_ns[1][i] = f->first_ns[i] * second;
    }
}

static void what_is_far_slower_ends_before_the_first_look(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    run(f);
    assert_true(f->timing.far_below);
    assert_int_equal(f->timing.cases[0].series.count, 2); // there is no noise
    assert_int_equal(f->timing.cases[1].series.count, 2);
    assert_int_equal(f->superblocks, 2);
    assert_int_equal(f->closed, 2);
    assert_int_equal(timing_verdict(&f->timing.rule, &f->timing.combined), VERDICT_SLOWER);
    assert_true(fabs(f->timing.combined.log2 + log2(3)) < 1e-9);
}

static void with_noise_it_takes_a_few_blocks_more(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->noise_log2 = 0.01;
    run(f);
    assert_true(f->timing.far_below);
    assert_int_equal(f->timing.cases[0].series.count, 4);
    assert_int_equal(timing_verdict(&f->timing.rule, &f->timing.combined), VERDICT_SLOWER);
}

// A short launch is not compared one by one there: few launches of different ranks say nothing.
static void that_holds_for_short_launches_too(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->timing.short_ns = 1e9;
    run(f);
    assert_true(f->timing.far_below);
    assert_int_equal(timing_verdict(&f->timing.rule, &f->timing.combined), VERDICT_SLOWER);
}

static void what_is_not_far_slower_everywhere_gets_the_first_look(void **state)
{
    static const double slower[][2] = {{1.1, 3}, {3, 1.1}, {3, 0.05}, {1.2, 1.2}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(slower); i++) {
        (void)tear_down(state);
        (void)set_up(state);
        f = *state;
        slow_down(f, slower[i][0], slower[i][1]);
        run(f);
        assert_false(f->timing.far_below);
        for (size_t j = 0; j < 2; j++) {
            assert_int_equal(f->timing.cases[j].series.count, TIMING_FIRST_LOOK);
        }
    }
}

// In a search, far slower than the baseline is not enough when the anchor is slower still.
static void the_anchor_counts_too(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->timing.rule.anchor_log2 = -2;
    run(f);
    assert_false(f->timing.far_below);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_far_slower_ends_before_the_first_look),
        TEST(with_noise_it_takes_a_few_blocks_more),
        TEST(that_holds_for_short_launches_too),
        TEST(what_is_not_far_slower_everywhere_gets_the_first_look),
        TEST(the_anchor_counts_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
