// Comparing one variant with another in pairs of equal spaces and seeds.
#include "replay/compare.h"
#include "tests/replay/made_up.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-12 * fmax(1.0, fabs(b));
}

// The control finds log2 of 1 with each seed; the other one finds more by what `ahead` says.
static struct made_up *with_lead(const double ahead[2][MADE_UP_SEEDS])
{
    struct made_up *m = made_up_create();

    for (size_t space = 0; space < 2; space++) {
        for (uint64_t seed = 0; seed < MADE_UP_SEEDS; seed++) {
            made_up_set(m, space, 0, seed, 1.0, 4.0, 10.0);
            made_up_set(m, space, 1, seed, 1.0 + ahead[space][seed], 2.0, 10.0);
        }
    }
    return m;
}

static void the_ratio_is_a_geometric_mean_over_spaces_and_seeds(void **state)
{
    struct made_up *m = with_lead((const double[2][MADE_UP_SEEDS]){{1, 1, 1, 1}, {0, 0, -2, 0}});

    (void)state;
    struct compare_ratio ratio = compare_final(&m->tasks, m->outcome, 1, 0);
    assert_true(is_near(ratio.ratio, exp2(0.5 * (1.0 - 0.5))));
    assert_true(ratio.lo < ratio.ratio && ratio.ratio < ratio.hi);
    struct compare_ratio back = compare_final(&m->tasks, m->outcome, 0, 1);
    assert_true(is_near(back.ratio * ratio.ratio, 1.0));
    made_up_free(m);
}

static void one_space_alone_has_a_ratio_of_its_own(void **state)
{
    struct made_up *m = with_lead((const double[2][MADE_UP_SEEDS]){{1, 1, 1, 1}, {0, 2, 0, -2}});

    (void)state;
    struct compare_ratio near = compare_on_space(&m->tasks, m->outcome, 1, 0, 0),
                         far = compare_on_space(&m->tasks, m->outcome, 1, 0, 1);
    assert_true(near.ratio == 2 && near.lo == 2 && near.hi == 2);
    assert_true(far.ratio == 1 && far.lo < 1 && far.hi > 1);
    assert_true(far.lo >= 0.25 && far.hi <= 4); // the most that any draw can be
    made_up_free(m);
}

static void an_interval_is_the_same_each_time(void **state)
{
    struct made_up *m = with_lead((const double[2][MADE_UP_SEEDS]){{.1, .2, .3, .4}, {1, 2, 3, 4}});

    (void)state;
    struct compare_ratio a = compare_final(&m->tasks, m->outcome, 1, 0),
                         b = compare_final(&m->tasks, m->outcome, 1, 0);
    assert_true(a.lo == b.lo && a.hi == b.hi);
    // Drawing spaces, too, makes it wider than drawing the seeds of either space.
    struct compare_ratio near = compare_on_space(&m->tasks, m->outcome, 1, 0, 0);
    assert_true(log2(a.hi / a.lo) > log2(near.hi / near.lo));
    made_up_free(m);
}

static void searches_at_once_count_as_their_mean(void **state)
{
    struct made_up *m = made_up_create();

    (void)state;
    m->tasks.searches = 2;
    m->tasks.seeds = MADE_UP_SEEDS / 2;
    for (size_t i = 0; i < MADE_UP_OUTCOMES; i++) {
        size_t variant = i / MADE_UP_SEEDS % 2;
        m->outcome[i].best_log2 = variant == 0 ? 0 : i % 2 == 0 ? 1 : 2;
    }
    struct compare_ratio ratio = compare_final(&m->tasks, m->outcome, 1, 0);
    assert_true(is_near(ratio.ratio, exp2(1.5)) && is_near(ratio.lo, ratio.hi));
    made_up_free(m);
}

// ---- time ----

static void time_is_over_what_the_other_was_given_or_needed(void **state)
{
    struct made_up *m = with_lead((const double[2][MADE_UP_SEEDS]){{0, 0, 0, 0}, {0, 0, 0, 0}});

    (void)state;
    struct compare_time given = compare_time(&m->tasks, m->outcome, 1, 0, 0, COMPARE_OF_GIVEN),
                        needed = compare_time(&m->tasks, m->outcome, 1, 0, 0, COMPARE_OF_NEEDED);
    for (size_t i = 0; i < 3; i++) {
        assert_true(given.quartile[i] == 0.2 && needed.quartile[i] == 0.5);
    }
    assert_true(given.reached == 1 && given.per_measured == 3);
    made_up_free(m);
}

static void a_search_that_never_gets_there_counts_as_infinite(void **state)
{
    struct made_up *m =
        with_lead((const double[2][MADE_UP_SEEDS]){{-.1, -.1, -.1, -.1}, {-.1, -.1, -.1, -.2}});

    (void)state;
    struct compare_time never = compare_time(&m->tasks, m->outcome, 1, 0, 0, COMPARE_OF_GIVEN),
                        near = compare_time(&m->tasks, m->outcome, 1, 0, 0.15, COMPARE_OF_GIVEN);
    assert_true(isinf(never.quartile[0]) && never.reached == 0 && isnan(never.per_measured));
    assert_true(near.quartile[2] == 0.2 && near.reached == 7.0 / 8);
    made_up_free(m);
}

static void quartiles_are_the_lower_of_two_in_the_middle(void **state)
{
    struct made_up *m = made_up_create();

    (void)state;
    m->tasks.spaces = 1;
    for (uint64_t seed = 0; seed < MADE_UP_SEEDS; seed++) {
        made_up_set(m, 0, 0, seed, 1.0, 4.0, 10.0);
        made_up_set(m, 0, 1, seed, 1.0, 4.0 - (double)seed, 10.0); // 4, 3, 2 and 1 s
    }
    struct compare_time time = compare_time(&m->tasks, m->outcome, 1, 0, 0, COMPARE_OF_GIVEN);
    assert_true(time.quartile[0] == 0.1 && time.quartile[1] == 0.2 && time.quartile[2] == 0.3);
    made_up_free(m);
}

static void what_took_no_time_is_equalled_by_no_time_alone(void **state)
{
    struct made_up *m = made_up_create();

    (void)state;
    m->tasks.spaces = m->tasks.seeds = 1;
    // Neither found anything: the baseline is there from the beginning.
    struct compare_time time = compare_time(&m->tasks, m->outcome, 1, 0, 0, COMPARE_OF_NEEDED);
    assert_true(time.quartile[1] == 1 && time.reached == 1 && isnan(time.per_measured));
    *made_up_outcome(m, 0, 0, 0) = (struct search_outcome){.best_log2 = 1.0};
    search_outcome_add_step(made_up_outcome(m, 0, 0, 0), &(struct search_step){.log2 = 1.0});
    m->outcome[1] = (struct search_outcome){.best_log2 = 1.0};
    search_outcome_add_step(&m->outcome[1],
                            &(struct search_step){.log2 = 1.0, .device_seconds = 2});
    time = compare_time(&m->tasks, m->outcome, 1, 0, 0, COMPARE_OF_NEEDED);
    assert_true(isinf(time.quartile[1]) && time.reached == 1);
    made_up_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ratio_is_a_geometric_mean_over_spaces_and_seeds),
        cmocka_unit_test(one_space_alone_has_a_ratio_of_its_own),
        cmocka_unit_test(an_interval_is_the_same_each_time),
        cmocka_unit_test(searches_at_once_count_as_their_mean),
        cmocka_unit_test(time_is_over_what_the_other_was_given_or_needed),
        cmocka_unit_test(a_search_that_never_gets_there_counts_as_infinite),
        cmocka_unit_test(quartiles_are_the_lower_of_two_in_the_middle),
        cmocka_unit_test(what_took_no_time_is_equalled_by_no_time_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
