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

// The launches of a block differ by so much, in either arm.
static void spread_launches(struct fixture *f, double log2_apart)
{
    f->first_ns[1] = f->first_ns[0] * exp2(log2_apart);
}

static void what_is_far_slower_ends_with_the_first_block_of_each_case(void **state)
{
    struct fixture *f = *state;
    struct result result;

    spread_launches(f, 0.03);
    slow_down(f, 3, 3);
    run(f);
    assert_true(f->timing.lost);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->timing.cases[i].series.count, 1);
        assert_int_equal(f->timing.cases[i].attempts, 1);
    }
    assert_int_equal(f->superblocks, 2);
    assert_int_equal(f->closed, 2);
    assert_int_equal(timing_verdict(&f->timing.rule, &f->timing.combined), VERDICT_SLOWER);
    // The estimates that are reported have the error that shows within the blocks.
    message_init(&result_message, &result);
    paired_timing_describe(&f->timing, &result);
    for (size_t i = 0; i < 2; i++) {
        const struct estimate *of_case = result.cases[i].speedup;

        assert_int_equal(of_case->blocks, 1);
        assert_true(fabs(of_case->log2 + log2(3)) < 1e-9);
        assert_true(fabs(of_case->hi - of_case->log2 - of_case->log2 + of_case->lo) < 1e-9);
        assert_true(of_case->hi - of_case->log2 > 0.1 && of_case->hi - of_case->log2 < 0.3);
    }
    assert_int_equal(result.speedup->blocks, 2);
    assert_true(result.speedup->hi - result.speedup->log2 > 0.05);
    assert_true(result.speedup->hi < result.cases[0].speedup->hi);
    message_clear(&result_message, &result);
}

// One block that was disturbed as a whole is no evidence when there is nothing else.
static void a_single_case_has_two_blocks(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->timing.case_count = 1;
    f->timing.cases[0].weight = 1;
    run(f);
    assert_true(f->timing.lost);
    assert_int_equal(f->timing.cases[0].series.count, 2);
}

static void what_is_less_than_far_slower_has_three_blocks(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 1.3, 1.3);
    run(f);
    assert_true(f->timing.lost);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->timing.cases[i].series.count, 3); // there is no noise
    }
}

static void launches_that_differ_within_a_block_are_not_trusted_before_the_third(void **state)
{
    struct fixture *f = *state;

    spread_launches(f, 2);
    slow_down(f, 3, 3);
    run(f);
    assert_true(f->timing.lost);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->timing.cases[i].series.count, 3); // which do not differ
    }
}

// The second block of a case that is slower by 3 on average: what disturbs a whole block is not
// seen within it, and one block is no evidence.
static void each_of_two_blocks_has_to_show_it(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->timing.case_count = 1;
    f->timing.cases[0].weight = 1;
    f->noise_log2 = 1.2;
    f->blocks = 1; // so that the first is slower by 6.9, the second by 1.3
    run(f);
    assert_in_range(f->timing.cases[0].series.count, TIMING_FIRST_LOOK, TIMING_BLOCKS_MAX);
}

static void after_a_void_block_few_are_not_trusted(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 3);
    f->void_every = 8;
    f->blocks = 7; // so that the first case's first one is void
    run(f);
    assert_true(f->timing.lost);
    assert_int_equal(f->timing.cases[0].voids, 1);
    assert_int_equal(f->timing.cases[0].series.count, 3);
    assert_int_equal(f->timing.cases[1].voids, 0);
    assert_int_equal(f->timing.cases[1].series.count, 1);
}

// Two blocks of the only case show it at the level of a case, but not at that of all together.
static void when_few_blocks_do_not_decide_each_case_has_three(void **state)
{
    struct fixture *f = *state;

    spread_launches(f, 0.3);
    slow_down(f, 2, 2);
    f->timing.case_count = 1;
    f->timing.cases[0].weight = 1;
    run(f);
    assert_true(f->timing.lost);
    assert_int_equal(f->superblocks, 2);
    assert_int_equal(f->timing.cases[0].series.count, 3);
    assert_int_equal(f->timing.cases[0].attempts, 3);
    // Three blocks that do not differ: their launches say nothing more about the error.
    assert_true(f->timing.combined.hi - f->timing.combined.lo < 1e-9);
}

static void with_noise_it_takes_a_few_blocks_more(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 1.2, 1.2);
    f->noise_log2 = 0.06;
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

// A case that is no loss, before others are known, has all blocks of the first look. After one that
// is a great loss it has three.
static void one_case_may_need_more_blocks_than_another(void **state)
{
    static const double slower[2][2] = {{1.02, 3}, {3, 1.02}};

    for (size_t fast = 0; fast < 2; fast++) {
        (void)tear_down(state);
        (void)set_up(state);
        struct fixture *f = *state;
        slow_down(f, slower[fast][0], slower[fast][1]);
        run(f);
        assert_true(f->timing.lost);
        assert_int_equal(f->timing.cases[fast].series.count, fast == 0 ? TIMING_FIRST_LOOK : 3);
        assert_int_equal(f->timing.cases[1 - fast].series.count, 3);
        assert_int_equal(f->superblocks, 2 + fast);
    }
}

// An incumbent that is four times as fast as the baseline in one case and as fast in the other has
// to be beaten: in one case a candidate that is slower than it by a third is far above what has to
// be beaten by all together, in the other far below.
static void cases_of_unequal_speedups_are_judged_together(void **state)
{
    static const double time[2][2] = {{1.33, 0.33}, {0.33, 1.33}};

    for (size_t far = 0; far < 2; far++) {
        (void)tear_down(state);
        (void)set_up(state);
        struct fixture *f = *state;
        f->noise_log2 = 0.01;
        slow_down(f, time[far][0], time[far][1]);
        f->timing.rule.anchor_log2 = 1;
        run(f);
        assert_true(f->timing.lost);
        assert_int_equal(f->timing.cases[0].series.count, 3);
        assert_int_equal(f->timing.cases[1].series.count, 3);
    }
}

// What seems to be one by the first case and is none by all has the blocks of the first look.
static void a_case_that_waited_goes_on(void **state)
{
    struct fixture *f = *state;

    f->noise_log2 = 0.01;
    slow_down(f, 0.72, 0.33);
    f->timing.rule.anchor_log2 = 1;
    run(f);
    assert_false(f->timing.lost);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->timing.cases[i].series.count, TIMING_FIRST_LOOK);
    }
    assert_int_equal(f->timing.cases[0].attempts, TIMING_FIRST_LOOK);
    assert_int_equal(f->timing.cases[1].attempts, TIMING_FIRST_LOOK);
    assert_int_equal(f->superblocks, 3);
}

// Where each case shows it, one that needs more blocks does not make the others run again.
static void cases_that_all_lose_need_not_have_equally_many_blocks(void **state)
{
    struct fixture *f = *state;

    slow_down(f, 3, 1.3);
    run(f);
    assert_true(f->timing.lost);
    assert_int_equal(f->timing.cases[0].series.count, 1);
    assert_int_equal(f->timing.cases[1].series.count, 3);
    assert_int_equal(f->timing.combined.blocks, 4);
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
    assert_int_equal(f->timing.cases[0].series.count, 1); // 1.6 times what has to be beaten
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
        TEST(what_is_far_slower_ends_with_the_first_block_of_each_case),
        TEST(a_single_case_has_two_blocks),
        TEST(what_is_less_than_far_slower_has_three_blocks),
        TEST(launches_that_differ_within_a_block_are_not_trusted_before_the_third),
        TEST(each_of_two_blocks_has_to_show_it),
        TEST(after_a_void_block_few_are_not_trusted),
        TEST(when_few_blocks_do_not_decide_each_case_has_three),
        TEST(with_noise_it_takes_a_few_blocks_more),
        TEST(that_holds_for_short_launches_too),
        TEST(one_case_may_need_more_blocks_than_another),
        TEST(cases_of_unequal_speedups_are_judged_together),
        TEST(a_case_that_waited_goes_on),
        TEST(cases_that_all_lose_need_not_have_equally_many_blocks),
        TEST(what_does_not_lose_on_the_whole_gets_the_first_look),
        TEST(the_anchor_is_what_has_to_be_beaten),
        TEST(a_case_with_hidden_time_is_not_cut_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
