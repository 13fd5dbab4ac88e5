// What came of one search: its steps, and when a speedup was reached.
#include "replay/search_outcome.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>

static void add(struct search_outcome *outcome, double device_seconds, double log2)
{
    search_outcome_add_step(outcome,
                            &(struct search_step){.device_seconds = device_seconds, .log2 = log2});
}

static void the_first_step_that_is_enough_is_found(void **state)
{
    struct search_outcome outcome = {.steps = 0};

    (void)state;
    add(&outcome, 1, -0.5); // slower than the baseline, as a first incumbent may be
    add(&outcome, 2, 0.5);
    add(&outcome, 3, 1.5);
    assert_ptr_equal(search_outcome_step(&outcome, 0.1), &outcome.step[1]);
    assert_ptr_equal(search_outcome_step(&outcome, 0.5), &outcome.step[1]);
    assert_ptr_equal(search_outcome_step(&outcome, nextafter(0.5, 1)), &outcome.step[2]);
    assert_ptr_equal(search_outcome_step(&outcome, 1.5), &outcome.step[2]);
    assert_null(search_outcome_step(&outcome, nextafter(1.5, 2)));
    assert_true(search_outcome_reached(&outcome, 0.5) == 2);
    assert_true(search_outcome_reached(&outcome, 1.0) == 3);
    assert_true(isinf(search_outcome_reached(&outcome, 1.6)));
}

static void the_baseline_is_there_from_the_beginning(void **state)
{
    struct search_outcome outcome = {.steps = 0};

    (void)state;
    assert_true(search_outcome_reached(&outcome, 0) == 0);
    assert_true(search_outcome_reached(&outcome, -1) == 0);
    assert_true(isinf(search_outcome_reached(&outcome, 1e-9)));
    add(&outcome, 5, 1);
    assert_null(search_outcome_step(&outcome, 0));
    assert_true(search_outcome_reached(&outcome, 0) == 0);
}

static void nothing_reaches_what_is_not_known(void **state)
{
    struct search_outcome outcome = {.steps = 0};

    (void)state;
    add(&outcome, 5, 1);
    assert_null(search_outcome_step(&outcome, (double)NAN));
    assert_true(isinf(search_outcome_reached(&outcome, (double)NAN)));
}

static void more_steps_than_there_is_room_for_replace_the_last(void **state)
{
    struct search_outcome outcome = {.steps = 0};

    (void)state;
    for (int i = 1; i <= SEARCH_STEPS_MAX + 3; i++) {
        add(&outcome, i, i);
    }
    assert_int_equal(outcome.steps, SEARCH_STEPS_MAX);
    assert_true(outcome.step[0].log2 == 1);
    assert_true(outcome.step[SEARCH_STEPS_MAX - 2].log2 == SEARCH_STEPS_MAX - 1);
    assert_true(outcome.step[SEARCH_STEPS_MAX - 1].log2 == SEARCH_STEPS_MAX + 3);
    // What lies between is known to be reached by the last one at the latest.
    assert_true(search_outcome_reached(&outcome, SEARCH_STEPS_MAX) == SEARCH_STEPS_MAX + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_step_that_is_enough_is_found),
        cmocka_unit_test(the_baseline_is_there_from_the_beginning),
        cmocka_unit_test(nothing_reaches_what_is_not_known),
        cmocka_unit_test(more_steps_than_there_is_room_for_replace_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
