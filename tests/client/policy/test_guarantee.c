// What may be said of everything that was never measured.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/guarantee.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

#define COUNT 20

struct made {
    double beyond[GUARANTEE_LEVELS], expected[GUARANTEE_LEVELS];
    struct run_state_candidate candidate[COUNT];
    struct forecast forecast[COUNT];
    struct result result[COUNT];
    struct estimate speedup[COUNT];
    struct run_state run_state;
};

// Of 1000 the expected number beyond a margin is `number` at the incumbent and falls by half for
// each percent.
static void make(struct made *made, double number)
{
    memset(made, 0, sizeof(*made));
    guarantee_levels(made->beyond);
    for (size_t i = 0; i < GUARANTEE_LEVELS; i++) {
        made->expected[i] = number * exp2(-100 * (exp2(made->beyond[i]) - 1));
    }
    made->run_state = (struct run_state){.measured = 100,
                                         .surveys = 1,
                                         .candidate = made->candidate,
                                         .surveyed = {.unmeasured = 1000,
                                                      .forecast = 1000,
                                                      .beyond_log2 = made->beyond,
                                                      .beyond_log2_count = GUARANTEE_LEVELS,
                                                      .expected = made->expected,
                                                      .expected_count = GUARANTEE_LEVELS}};
}

static struct guarantee of(const struct made *made)
{
    return guarantee_of_run(&made->run_state);
}

static double percent(double log2)
{
    return 100 * (exp2(log2) - 1);
}

static void margins_rise_from_the_incumbent(void **state)
{
    (void)state;
    double beyond[GUARANTEE_LEVELS];
    guarantee_levels(beyond);
    assert_true(beyond[0] == 0);
    for (size_t i = 1; i < GUARANTEE_LEVELS; i++) {
        assert_true(beyond[i] > beyond[i - 1]);
    }
    assert_true(fabs(percent(beyond[8]) - 4) < 1e-9 && percent(beyond[GUARANTEE_LEVELS - 1]) > 75);
}

static void more_that_is_expected_beyond_raises_the_margin(void **state)
{
    (void)state;
    double last = -1;
    for (double number = 0.1; number < 1000; number *= 4) {
        struct made made;
        make(&made, number);
        struct guarantee g = of(&made);
        assert_true(g.said && g.beyond_log2 >= last);
        double said = percent(g.stated_log2);
        assert_true(g.stated_log2 >= g.beyond_log2 - 1e-4 && said > 1 - 1e-9);
        assert_true(fabs(said - round(said)) < 1e-9 && said < percent(g.beyond_log2) + 1 + 1e-9);
        last = g.beyond_log2;
    }
    assert_true(percent(last) > 8 && percent(last) < 12); // log2(409 / 1.01) = 8.7
}

static void it_says_whole_percents_and_no_less_than_one(void **state)
{
    (void)state;
    struct made made;
    make(&made, 0.01);
    struct guarantee g = of(&made);
    assert_true(g.beyond_log2 == 0);
    assert_string_equal(g.text, "none of the 1000 that were never measured is more than 1 % "
                                "faster, with 90 % confidence");
    made.run_state.surveyed.forecast = 400;
    assert_non_null(strstr(of(&made).text, "none of the 400 looked at of the 1000 that"));
    make(&made, 400);
    assert_non_null(strstr(of(&made).text, "more than 9 % faster"));
}

// A search whose promises were not kept is believed less likely to have left something.
static void promises_of_the_search_correct_it(void **state)
{
    (void)state;
    struct made made;
    make(&made, 100);
    double before = of(&made).beyond_log2;
    made.run_state.candidate_count = COUNT;
    for (size_t i = 0; i < COUNT; i++) {
        made.speedup[i].log2 = -1;
        made.forecast[i].p_improves = 0.9;
        made.result[i] = (struct result){.verdict = VERDICT_SLOWER, .speedup = &made.speedup[i]};
        made.candidate[i] = (struct run_state_candidate){.proposed = {.screened = 500},
                                                         .forecast = &made.forecast[i],
                                                         .result = &made.result[i]};
    }
    double promised, kept;
    guarantee_promises(&made.run_state, made.run_state.candidate_count, &promised, &kept);
    assert_true(fabs(promised - 18) < 1e-9 && kept == 0);
    assert_true(fabs(guarantee_correction(promised, kept) - 0.1) < 1e-9);
    guarantee_promises(&made.run_state, COUNT / 2, &promised, &kept); // as a search saw it before
    assert_true(fabs(promised - 9) < 1e-9);
    assert_true(guarantee_correction(0, 0) == 1);
    double broken = of(&made).beyond_log2;
    assert_true(broken < before);
    for (size_t i = 0; i < COUNT; i++) {
        made.speedup[i].log2 = 1;
    }
    assert_true(of(&made).beyond_log2 > before);
    for (size_t i = 0; i < COUNT; i++) { // audits were not chosen for their promise alone
        made.candidate[i].proposed.draw = i + 1;
    }
    assert_true(fabs(of(&made).beyond_log2 - before) < 1e-12);
}

static void it_says_so_when_it_can_say_nothing(void **state)
{
    (void)state;
    struct made made;
    make(&made, 1);
    made.run_state.measured = GUARANTEE_MEASURED_LEAST - 1;
    struct guarantee g = of(&made);
    assert_true(!g.said && isnan(g.stated_log2) && isnan(g.beyond_log2));
    assert_string_equal(g.text, "nothing can be said of the 1000 that were never measured: 29 "
                                "measurements are too few, it takes 30");
    make(&made, 1);
    made.run_state.surveyed.forecast = 0;
    char why[] = "the worker's engine does not screen";
    made.run_state.surveyed.obstacle = why;
    g = of(&made);
    assert_false(g.said);
    assert_non_null(strstr(g.text, "could not be forecast: the worker's engine"));
    make(&made, 1);
    for (size_t i = 0; i < GUARANTEE_LEVELS; i++) {
        made.expected[i] = 50;
    }
    g = of(&made);
    assert_true(!g.said && isnan(g.stated_log2));
    assert_non_null(strstr(g.text, "may well be more than 79 % faster"));
    made.run_state.surveys = 0;
    assert_string_equal(of(&made).text, "");
    make(&made, 1);
    made.run_state.surveyed.unmeasured = made.run_state.surveyed.forecast = 0;
    g = of(&made);
    assert_true(g.said && g.stated_log2 == 0);
    assert_string_equal(g.text, "nothing was left unmeasured");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(margins_rise_from_the_incumbent),
        cmocka_unit_test(more_that_is_expected_beyond_raises_the_margin),
        cmocka_unit_test(it_says_whole_percents_and_no_less_than_one),
        cmocka_unit_test(promises_of_the_search_correct_it),
        cmocka_unit_test(it_says_so_when_it_can_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
