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
    assert_true(f->timing.lost);
    assert_int_equal(f->timing.cases[0].series.count, 3); // there is no noise
    assert_int_equal(f->timing.cases[1].series.count, 3);
    assert_int_equal(f->superblocks, 2);
    assert_int_equal(f->closed, 2);
    assert_int_equal(timing_verdict(&f->timing.rule, &f->timing.combined), VERDICT_SLOWER);
    assert_true(fabs(f->timing.combined.log2 + log2(3)) < 1e-9);
}

static void with_noise_it_takes_a_few_blocks_more(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 1.2, 1.2);
    f->noise_log2 = 0.04;
    run(f);
    assert_true(f->timing.lost);
    assert_in_range(f->timing.cases[0].series.count, 4, TIMING_FIRST_LOOK - 1);
    assert_int_equal(timing_verdict(&f->timing.rule, &f->timing.combined), VERDICT_SLOWER);
}

// A short launch is not compared one by one there: few launches of different ranks say nothing.
static void that_holds_for_short_launches_too(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->timing.short_ns = 1e9;
    run(f);
    assert_true(f->timing.lost);
    assert_int_equal(timing_verdict(&f->timing.rule, &f->timing.combined), VERDICT_SLOWER);
}

// A case that is no loss has all blocks of the first look, and the others do not wait for it.
static void one_case_may_need_more_blocks_than_another(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 1.02, 3);
    run(f);
    assert_true(f->timing.lost);
    assert_int_equal(f->timing.cases[0].series.count, TIMING_FIRST_LOOK);
    assert_int_equal(f->timing.cases[1].series.count, 3);
}

static void what_does_not_lose_on_the_whole_gets_the_first_look(void **state)
{
    static const double slower[][2] = {{3, 0.05}, {0.05, 3}, {1.04, 1.04}, {0.5, 1.5}, {1.5, 0.62}};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(slower); i++) {
        (void)tear_down(state);
        (void)set_up(state);
        f = *state;
        slow_down(f, slower[i][0], slower[i][1]);
        run(f);
        assert_false(f->timing.lost);
        for (size_t j = 0; j < 2; j++) {
            assert_int_equal(f->timing.cases[j].series.count, TIMING_FIRST_LOOK);
        }
    }
}

// In a search a candidate has to beat the anchor: being slower than the baseline is no loss when
// the anchor is slower still, and being faster than it is no gain when the anchor is faster still.
static void the_anchor_is_what_has_to_be_beaten(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->timing.rule.anchor_log2 = -2;
    run(f);
    assert_false(f->timing.lost);
    (void)tear_down(state);
    (void)set_up(state);
    f = *state;
    slow_down(f, 0.8, 0.8);
    f->timing.rule.anchor_log2 = 1;
    run(f);
    assert_true(f->timing.lost);
    assert_int_equal(f->timing.cases[0].series.count, 3);
    assert_int_equal(timing_verdict(&f->timing.rule, &f->timing.combined), VERDICT_FASTER);
}

// Whoever hides time from its clock is looked at until that is certain.
static void a_case_with_hidden_time_is_not_cut_short(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->void_every = 2;
    f->escaped_every = 1;
    f->escaped_ns = 20000;
    run(f);
    for (size_t i = 0; i < 2; i++) {
        assert_true(f->timing.cases[i].series.count >= TIMING_FIRST_LOOK);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_far_slower_ends_before_the_first_look),
        TEST(with_noise_it_takes_a_few_blocks_more),
        TEST(that_holds_for_short_launches_too),
        TEST(one_case_may_need_more_blocks_than_another),
        TEST(what_does_not_lose_on_the_whole_gets_the_first_look),
        TEST(the_anchor_is_what_has_to_be_beaten),
        TEST(a_case_with_hidden_time_is_not_cut_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
