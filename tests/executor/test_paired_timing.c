// Paired timing on blocks that the test makes up: which blocks count, when there are enough, what
// ends it, and what the result says. No clock decides anything.
#include "tests/executor/paired_timing_fixture.h"

static void a_clear_difference_is_decided_at_the_first_look(void **state)
{
    struct fixture *f = *state;
    const struct timed_case *timed = &f->timing.cases[0];

    run(f);
    assert_int_equal(timed->series.count, TIMING_FIRST_LOOK);
    assert_int_equal(timed->attempts, TIMING_FIRST_LOOK);
    assert_int_equal(f->blocks, timed->attempts);
    assert_int_equal(timed->launch_count, 2 * TIMING_FIRST_LOOK);
    assert_int_equal(f->timing.launches, 2 * TIMING_FIRST_LOOK);
    assert_true(fabs(f->timing.combined.log2 - 1) < 1e-12);
    assert_false(f->timing.capped);
    assert_null(paired_timing_disturbed(&f->timing));
    assert_true(paired_timing_second_median(timed) == 1000);
    assert_true(fabs(paired_timing_median(timed) - sqrt(2000.0 * 1000)) < 1e-9);
}

// Such blocks never count, so without an end of its own the timing would run for ever.
static void a_clock_that_shows_no_time_is_an_error(void **state)
{
    struct fixture *f = *state;
    const struct timed_case *timed = &f->timing.cases[0];
    struct err err = ERR_INIT;

    f->second_ns[0][1] = 0;
    assert_int_equal(paired_timing_run(&f->timing, &err), ERR_SYSTEM);
    assert_string_equal(err.text, "the clock shows no time for launches in 17 of 17 blocks");
    assert_int_equal(timed->series.count, 0);
    assert_int_equal(f->blocks, 17);
}

static void some_blocks_without_a_time_are_run_again(void **state)
{
    struct fixture *f = *state;
    const struct timed_case *timed = &f->timing.cases[0];

    f->timeless_every = 3;
    run(f);
    assert_int_equal(timed->series.count, TIMING_FIRST_LOOK);
    assert_int_equal(timed->timeless, timed->attempts / 3);
    assert_true(timed->timeless > 0);
    assert_true(fabs(f->timing.combined.log2 - 1) < 1e-12);
}

static void without_a_decision_all_looks_are_done(void **state)
{
    struct fixture *f = *state;

    f->noise_log2 = 3;
    f->first_ns[0] = f->first_ns[1] = 1000;
    f->timing.looks = 4;
    run(f);
    assert_int_equal(f->timing.cases[0].series.count, TIMING_FIRST_LOOK << 3);
    assert_true(f->timing.combined.lo < 0 && f->timing.combined.hi > 0);
    assert_false(f->timing.capped);
    // The largest number of looks fills the series and no more.
    struct fixture *all = xmemdup(f, sizeof(*f));
    all->timing.owner = all;
    all->timing.rng = &all->rng;
    all->timing.looks = TIMING_LOOKS;
    run(all);
    assert_int_equal(all->timing.cases[0].series.count, TIMING_BLOCKS_MAX);
    assert_int_equal(all->timing.cases[0].launch_count, 2 * TIMING_BLOCKS_MAX);
    free(all);
}

// More blocks of a case from which next to none of the noise comes would tell nothing.
static void only_noisy_cases_get_more_blocks(void **state)
{
    struct fixture *f = *state;

    f->timing.case_count = 2;
    f->timing.cases[0].weight = f->timing.cases[1].weight = 0.5;
    f->noise_log2 = 0.3;
    f->noise_of[0] = 0.2; // with 0.04 of the second case's variance
    f->first_ns[0] = f->first_ns[1] = 1000;
    f->timing.looks = 4;
    run(f);
    assert_int_equal(f->timing.cases[0].series.count, TIMING_FIRST_LOOK << 1);
    assert_int_equal(f->timing.cases[1].series.count, TIMING_FIRST_LOOK << 3);
    assert_true(f->timing.combined.lo < 0 && f->timing.combined.hi > 0);
    // It gets them when the other has so many that its share is no longer small.
    struct fixture *later = xmemdup(f, sizeof(*f));
    later->timing.owner = later;
    later->timing.rng = &later->rng;
    later->timing.looks = 5;
    later->blocks = 0;
    run(later);
    assert_int_equal(later->timing.cases[0].series.count, TIMING_FIRST_LOOK << 2);
    assert_int_equal(later->timing.cases[1].series.count, TIMING_FIRST_LOOK << 4);
    free(later);
}

static void a_systematic_error_widens_what_blocks_cannot(void **state)
{
    struct fixture *f = *state;

    f->systematic_log2 = 0.6;
    run(f);
    assert_true(f->timing.combined.systematic == 0.6);
    assert_true(f->timing.combined.lo < 0.5 && f->timing.combined.hi > 1.5);
}

static void used_up_seconds_leave_the_least_blocks_of_each_case(void **state)
{
    struct fixture *f = *state;

    f->timing.max_seconds = -1; // used up before it begins
    f->timing.case_count = 2;
    f->timing.cases[0].weight = f->timing.cases[1].weight = 0.5;
    run(f);
    assert_true(f->timing.capped);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(f->timing.cases[i].series.count, 3);
        assert_int_equal(f->timing.cases[i].attempts, 3);
    }
    assert_int_equal(f->timing.combined.blocks, 6);
}

static void a_superblock_is_eight_blocks_of_one_phase(void **state)
{
    struct fixture *f = *state;
    size_t phases[2] = {0};

    f->noise_log2 = 3;
    f->first_ns[0] = f->first_ns[1] = 1000;
    run(f);
    assert_int_equal(f->superblocks, TIMING_BLOCKS_MAX / TIMING_SUPERBLOCK);
    assert_int_equal(f->closed, TIMING_LOOKS);
    assert_int_equal(f->blocks, TIMING_BLOCKS_MAX);
    for (size_t i = 0; i < f->blocks; i++) {
        assert_int_equal(f->log[i].superblock, i / TIMING_SUPERBLOCK + 1);
        assert_int_equal(f->log[i].phase, f->log[i - i % TIMING_SUPERBLOCK].phase);
        phases[f->log[i].phase]++;
    }
    assert_true(phases[0] > 16 && phases[1] > 16);
}

static void no_content_is_launched_twice(void **state)
{
    struct fixture *f = *state;

    f->void_every = 5;
    f->timing.case_count = 2;
    f->timing.cases[0].weight = f->timing.cases[1].weight = 0.5;
    f->timing.cases[0].content = 2;
    f->timing.cases[1].content = 100;
    run(f);
    uint64_t next[2] = {2, 100};
    for (size_t i = 0; i < f->blocks; i++) {
        size_t number = (size_t)(f->log[i].of - f->timing.cases);
        if (i == 0 || f->log[i].superblock != f->log[i - 1].superblock) {
            assert_int_equal(f->begun_on[f->log[i].superblock - 1], next[number]++);
        }
        assert_int_equal(f->log[i].content, next[number]);
        next[number] += 2;
    }
}

static unsigned judged_in(const struct fixture *f, size_t block)
{
    return (f->log[block].judge & 1) + (f->log[block].judge >> 1 & 1);
}

static void launches_are_judged_in_proportion(void **state)
{
    struct fixture *f = *state;
    unsigned first = 0, later = 0;

    f->noise_log2 = 3;
    f->first_ns[0] = f->first_ns[1] = 1000;
    f->void_every = 7;
    run(f);
    for (size_t i = 0; i < f->blocks; i++) {
        *(f->log[i].superblock == 1 ? &first : &later) += judged_in(f, i);
    }
    assert_true(first >= 1);
    assert_true(later > 30 && later < 75); // of some 580 launches
}

// A candidate sees by the time between blocks which launches were judged.
static void what_was_judged_says_nothing_about_what_will_be(void **state)
{
    enum { RUNS = 600 };
    struct fixture *f = *state;
    const struct fixture fresh = *f;
    unsigned after[2] = {0}, of[2] = {0}, none = 0;

    for (size_t r = 0; r < RUNS; r++) {
        *f = fresh;
        f->timing.owner = f;
        f->timing.rng = &f->rng;
        stats_rng_init(&f->rng, r, 1);
        run(f);
        assert_int_equal(f->blocks, TIMING_FIRST_LOOK);
        unsigned sum = 0;
        for (size_t i = 0; i < f->blocks; i++) {
            unsigned judged = judged_in(f, i);
            size_t before = i > 0 && judged_in(f, i - 1) > 0;

            sum += judged;
            if (i > 0 && i + 1 < f->blocks) {
                after[before] += judged;
                of[before] += 2;
            }
        }
        none += sum == 0;
    }
    double share[2] = {(double)after[0] / of[0], (double)after[1] / of[1]};
    assert_true(fabs(share[0] - share[1]) < 0.03);
    assert_true(fabs(share[0] - 0.3125) < 0.03);
    assert_int_equal(none, 0);
}

static void void_blocks_are_run_again(void **state)
{
    struct fixture *f = *state;
    const struct timed_case *timed = &f->timing.cases[0];

    f->void_every = 3;
    run(f);
    assert_int_equal(timed->series.count, TIMING_FIRST_LOOK);
    assert_true(timed->voids >= 3);
    assert_int_equal(timed->attempts, timed->voids + timed->series.count);
    assert_int_equal(timed->launch_count, 2 * timed->series.count);
    assert_null(paired_timing_disturbed(&f->timing));
}

static void when_most_blocks_are_void_none_of_them_counts(void **state)
{
    struct fixture *f = *state;
    const struct timed_case *timed = &f->timing.cases[0];

    f->void_every = 1;
    f->escaped_every = 3;
    run(f);
    assert_int_equal(timed->series.count, 0);
    assert_true(timed->disturbed);
    assert_ptr_equal(paired_timing_disturbed(&f->timing), timed);
    assert_int_equal(timed->attempts, timed->voids);
    assert_int_equal(timed->voids, 17);
    assert_int_equal(timed->escaped, 5);
    assert_int_equal(f->timing.launches, 0);
    assert_int_equal(f->timing.combined.blocks, 0);
    assert_false(f->timing.combined.lo > 0 || f->timing.combined.hi < 0);
    assert_false(f->timing.capped);
}

static void a_few_blocks_with_different_clocks_are_run_again(void **state)
{
    struct fixture *f = *state;
    const struct timed_case *timed = &f->timing.cases[0];

    f->unlike_every = 4;
    f->unlike_hz[0] = 1e9;
    f->unlike_hz[1] = 2e9;
    f->noise_log2 = 3;
    f->first_ns[0] = f->first_ns[1] = 1000;
    f->timing.looks = 4;
    run(f);
    assert_int_equal(timed->series.count, TIMING_FIRST_LOOK << 3);
    assert_true(timed->unlike > 8);
    assert_int_equal(timed->unlike_counted, 0);
    assert_int_equal(timed->voids, timed->unlike);
    assert_null(paired_timing_disturbed(&f->timing));
}

// When it is what the arms do to the clock, the second gains nothing by it: it has the first arm's
// times at its own clock where that is the higher one, and otherwise the times as they were.
static void most_blocks_with_different_clocks_count_against_the_second_arm(void **state)
{
    struct fixture *f = *state;
    static const double hz[2][2] = {{1.5e9, 1.8e9}, {1.8e9, 1.5e9}};
    static const double first_ns[2] = {2000 * 1.5 / 1.8, 2000};

    for (size_t i = 0; i < 2; i++) {
        struct fixture *own = xmemdup(f, sizeof(*f));
        const struct timed_case *timed = &own->timing.cases[0];

        own->timing.owner = own;
        own->timing.rng = &own->rng;
        own->unlike_every = 1;
        memcpy(own->unlike_hz, hz[i], sizeof(hz[i]));
        run(own);
        assert_int_equal(timed->voids, 4);
        assert_int_equal(timed->series.count, TIMING_FIRST_LOOK);
        assert_int_equal(timed->unlike_counted, TIMING_FIRST_LOOK);
        assert_null(paired_timing_disturbed(&own->timing));
        for (size_t k = 0; k < timed->launch_count; k++) {
            assert_true(fabs(timed->first_ns[k] - first_ns[i]) < 1e-9);
            assert_true(timed->second_ns[k] == 1000);
        }
        assert_true(fabs(own->timing.combined.log2 - log2(first_ns[i] / 1000)) < 1e-9);
        free(own);
    }
}

// A candidate that has its slow blocks taken for such in which it slept gains nothing by it.
static void blocks_in_which_time_escapes_count_by_the_wall_clock(void **state)
{
    struct fixture *f = *state;
    const struct timed_case *timed = &f->timing.cases[0];

    f->void_every = 3;
    f->escaped_every = 1;
    f->escaped_ns = 8000;
    f->first_ns[0] = f->first_ns[1] = 1000;
    f->noise_log2 = 3;
    run(f);
    assert_int_equal(timed->series.count, TIMING_BLOCKS_MAX);
    assert_int_equal(timed->attempts, timed->series.count);
    assert_int_equal(timed->voids, timed->escaped);
    size_t slow = 0;
    for (size_t i = 0; i < timed->launch_count; i++) {
        slow += timed->second_ns[i] == 8000;
    }
    assert_int_equal(slow, 2 * timed->escaped);
    assert_true(slow > 100);
    assert_null(paired_timing_disturbed(&f->timing));
}

// Not more of them, however, than the machine does to the first arm as well.
static void blocks_that_the_machine_disturbs_in_both_arms_are_void(void **state)
{
    struct fixture *f = *state;
    const struct timed_case *timed = &f->timing.cases[0];

    f->void_every = 3;
    f->escaped_every = 2;
    f->escaped_ns = 8000;
    run(f);
    assert_true(timed->escaped >= 1 && timed->voids > timed->escaped);
    assert_int_equal(timed->attempts, timed->voids + timed->series.count);
    for (size_t i = 0; i < timed->launch_count; i++) {
        assert_true(timed->second_ns[i] == 1000);
    }
}

static void a_block_that_fails_ends_it_at_once(void **state)
{
    static const int with[] = {MEASURE_STOP, ERR_SYSTEM};

    for (size_t i = 0; i < ARRAY_LEN(with); i++) {
        struct fixture *f = *state;
        struct err err = ERR_INIT;

        f->blocks = 0;
        f->timing.cases[0] = (struct timed_case){.weight = 1};
        f->failing = 5;
        f->with = with[i];
        assert_int_equal(paired_timing_run(&f->timing, &err), with[i]);
        assert_int_equal(f->blocks, 5);
        assert_int_equal(f->timing.cases[0].series.count, 4); // one failed
        assert_string_equal(err.text, with[i] == MEASURE_STOP ? "" : "block 5 fails");
    }
}

// A launch that fell into another mode moves the ratio of its block, but not what most launches
// show.
static void short_launches_are_compared_one_by_one(void **state)
{
    struct fixture *f = *state;

    f->spike_every = 2;
    f->timing.looks = 1;
    struct fixture *other = xmemdup(f, sizeof(*f));
    other->timing.owner = other;
    other->timing.rng = &other->rng;
    other->timing.short_ns = 1e6;
    run(f);
    run(other);
    assert_true(f->timing.combined.log2 > 1.5);
    assert_true(fabs(other->timing.combined.log2 - 1) < 0.05);
    free(other);
}

static void cases_are_weighed_and_described(void **state)
{
    struct fixture *f = *state;
    struct result result;

    f->timing.case_count = 2;
    f->timing.cases[0].weight = 0.25;
    f->timing.cases[1].weight = 0.75;
    f->second_ns[1][0] = 400; // of the second case the launches of a block differ
    f->second_ns[1][1] = 100;
    run(f);
    message_init(&result_message, &result);
    paired_timing_describe(&f->timing, &result);
    double log2_of_second = log2(2000.0 / 200);
    assert_true(fabs(result.speedup->log2 - (0.25 + 0.75 * log2_of_second)) < 1e-9);
    assert_int_equal(result.speedup->blocks, 2 * TIMING_FIRST_LOOK);
    assert_int_equal(result.launches, 4 * TIMING_FIRST_LOOK);
    assert_int_equal(result.cases_count, 2);
    assert_true(result.cases[0].weight == 0.25 && result.cases[1].weight == 0.75);
    assert_true(fabs(result.cases[0].speedup->log2 - 1) < 1e-9);
    assert_true(fabs(result.cases[1].speedup->log2 - log2_of_second) < 1e-9);
    assert_true(result.cases[1].candidate_ns->p10 == 100);
    assert_true(result.cases[1].candidate_ns->p50 == 250);
    assert_true(result.cases[1].candidate_ns->p90 == 400);
    assert_true(result.cases[1].baseline_ns->p50 == 2000);
    // At the top are the times of the first case.
    assert_true(result.baseline_ns->p50 == 2000 && result.candidate_ns->p90 == 1000);
    message_clear(&result_message, &result);
}

static void an_estimate_is_sent_with_finite_numbers(void **state)
{
    static const struct {
        struct timing_estimate from;
        double log2, lo, hi;
    } row[] = {
        {{.log2 = 0.5, .lo = 0.25, .hi = 0.75}, 0.5, 0.25, 0.75},
        {{.log2 = NAN, .lo = NAN, .hi = NAN}, 0, -64, 64},
        {{.log2 = 1, .lo = -INFINITY, .hi = INFINITY}, 1, -64, 64},
        {{.log2 = 1e9, .lo = 1e8, .hi = 1e10}, 64, 64, 64},
        {{.log2 = -INFINITY, .lo = -INFINITY, .hi = -100}, -64, -64, -64},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct estimate *estimate = paired_timing_estimate(&row[i].from);

        assert_true(estimate->log2 == row[i].log2);
        assert_true(estimate->lo == row[i].lo);
        assert_true(estimate->hi == row[i].hi);
        free(estimate);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_clear_difference_is_decided_at_the_first_look),
        TEST(a_clock_that_shows_no_time_is_an_error),
        TEST(some_blocks_without_a_time_are_run_again),
        TEST(without_a_decision_all_looks_are_done),
        TEST(only_noisy_cases_get_more_blocks),
        TEST(a_systematic_error_widens_what_blocks_cannot),
        TEST(used_up_seconds_leave_the_least_blocks_of_each_case),
        TEST(a_superblock_is_eight_blocks_of_one_phase),
        TEST(no_content_is_launched_twice),
        TEST(launches_are_judged_in_proportion),
        TEST(what_was_judged_says_nothing_about_what_will_be),
        TEST(blocks_in_which_time_escapes_count_by_the_wall_clock),
        TEST(blocks_that_the_machine_disturbs_in_both_arms_are_void),
        TEST(void_blocks_are_run_again),
        TEST(a_few_blocks_with_different_clocks_are_run_again),
        TEST(most_blocks_with_different_clocks_count_against_the_second_arm),
        TEST(when_most_blocks_are_void_none_of_them_counts),
        TEST(a_block_that_fails_ends_it_at_once),
        TEST(short_launches_are_compared_one_by_one),
        TEST(cases_are_weighed_and_described),
        TEST(an_estimate_is_sent_with_finite_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
