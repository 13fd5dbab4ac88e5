// The confidence is low with few decisions, rises with right ones and falls with wrong ones.
#include "worker/calibration/decisions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int set_up(void **state)
{
    *state = decisions_create();
    return 0;
}

static int tear_down(void **state)
{
    decisions_free(*state);
    return 0;
}

static void repeat(struct decisions *calibration, int times, double p, bool improved,
                   double propensity)
{
    for (int i = 0; i < times; i++) {
        decisions_add(calibration, p, improved, propensity, 0);
    }
}

static void without_a_history_nothing_is_believed_much(void **state)
{
    assert_true(decisions_confidence(*state, 0.001, 0) < 0.9);
    assert_true(decisions_confidence(*state, 0, 0) < 0.9);
    assert_true(decisions_confidence(*state, 1, 0) < 0.9);
    assert_true(decisions_confidence(*state, 0.5, 0) <= 0.5 + 1e-9);
    assert_true(isnan(decisions_accuracy(*state)));
}

static void right_calls_raise_it(void **state)
{
    double before = decisions_confidence(*state, 0.02, 0);
    repeat(*state, 3, 0.02, false, 1);
    double after = decisions_confidence(*state, 0.02, 0);
    assert_true(after > before);
    repeat(*state, 30, 0.02, false, 1);
    assert_true(decisions_confidence(*state, 0.02, 0) > after);
    assert_true(decisions_confidence(*state, 0.02, 0) > 0.95);
    assert_float_equal(decisions_accuracy(*state), 1, 1e-9);
}

static void a_wrong_audit_lowers_it_below_the_threshold(void **state)
{
    repeat(*state, 20, 0.02, false, 1);
    assert_true(decisions_confidence(*state, 0.02, 0) > 0.9);
    decisions_add(*state, 0.02, true, 0.1, 0);
    assert_true(decisions_confidence(*state, 0.02, 0) < 0.9);
    assert_float_equal(decisions_accuracy(*state), 20.0 / 30, 1e-9);
}

static void a_wrong_audit_costs_more_than_a_wrong_call_that_was_measured_anyway(void **state)
{
    struct decisions *other = decisions_create();
    repeat(*state, 20, 0.02, false, 1);
    repeat(other, 20, 0.02, false, 1);
    decisions_add(*state, 0.02, true, 0.1, 0);
    decisions_add(other, 0.02, true, 1, 0);
    assert_true(decisions_confidence(*state, 0.02, 0) < decisions_confidence(other, 0.02, 0));
    decisions_free(other);
}

static void it_recovers_when_calls_are_right_again(void **state)
{
    repeat(*state, 10, 0.02, false, 1);
    repeat(*state, 3, 0.02, true, 1);
    double low = decisions_confidence(*state, 0.02, 0);
    repeat(*state, 100, 0.02, false, 1);
    assert_true(low < 0.85);
    assert_true(decisions_confidence(*state, 0.02, 0) > 0.95);
}

// What is older than thousands of decisions does not count, and a copy says the same.
static void a_copy_says_the_same(void **state)
{
    struct decisions *last = decisions_create();
    for (int i = 0; i < 8000; i++) {
        decisions_add(*state, 0.02 + 0.0001 * i, i % 7 == 0, 1, i % 3);
        if (i >= 3000) {
            decisions_add(last, 0.02 + 0.0001 * i, i % 7 == 0, 1, i % 3);
        }
    }
    struct decisions *copy = decisions_copy(*state);
    assert_int_equal(decisions_count(copy), 8000);
    for (double p = 0.55; p < 1; p += 0.1) {
        for (double phase = -1; phase <= 3; phase++) {
            double confidence = decisions_confidence(*state, p, phase);
            assert_true(confidence == decisions_confidence(copy, p, phase));
            assert_true(fabs(confidence - decisions_confidence(last, p, phase)) < 1e-6);
        }
    }
    decisions_free(copy);
    decisions_free(last);
}

// A search has ended far beyond the baseline, where nearly nothing improves. The next one begins at
// the baseline, and half of what was said at the first one's beginning was wrong.
static void old_decisions_of_the_phase_count_more_than_new_ones_of_another(void **state)
{
    for (int i = 0; i < 500; i++) {
        decisions_add(*state, 0.02, i % 2, 1, 0);
    }
    for (int i = 0; i < 2500; i++) {
        decisions_add(*state, 0.02, false, 1, 3);
    }
    for (double p = 0.02; p < 0.3; p += 0.08) {
        assert_true(decisions_confidence(*state, p, 0) < 0.92);
    }
    assert_true(decisions_confidence(*state, 0.02, 3) > 0.95);
    assert_true(decisions_confidence(*state, 0.26, 0) < 0.6);
}

static void decisions_of_another_phase_count_less(void **state)
{
    struct decisions *other = decisions_create();
    for (int i = 0; i < 40; i++) {
        decisions_add(*state, 0.02, i % 2, 1, i % 2); // wrong in phase 1 alone
        decisions_add(other, 0.02, i % 2, 1, 0);      // and the same in one phase
    }
    double apart = decisions_confidence(*state, 0.02, 0);
    assert_true(apart > 0.8);
    assert_true(decisions_confidence(*state, 0.02, 1) < 0.3);
    assert_true(decisions_confidence(other, 0.02, 0) < 0.65);
    decisions_free(other);
}

static void calls_of_the_other_kind_do_not_count(void **state)
{
    double before = decisions_confidence(*state, 0.02, 0);
    repeat(*state, 50, 0.98, true, 1);
    assert_true(decisions_confidence(*state, 0.02, 0) == before);
    assert_true(decisions_confidence(*state, 0.98, 0) > before);
}

static void weak_calls_that_were_wrong_hardly_touch_strong_ones(void **state)
{
    repeat(*state, 30, 0.01, false, 1);
    double before = decisions_confidence(*state, 0.01, 0);
    repeat(*state, 5, 0.45, true, 1);
    assert_true(decisions_confidence(*state, 0.01, 0) > before - 0.02);
    assert_true(decisions_confidence(*state, 0.45, 0) < 0.75);
}

static void it_is_always_a_probability(void **state)
{
    for (int i = 0; i < 500; i++) {
        double p = (i * 37 % 101) / 100.0;
        double confidence = decisions_confidence(*state, p, 0);
        assert_true(confidence >= 0 && confidence <= 1);
        decisions_add(*state, p, i % 3 == 0, 1e-3 + (i % 10) / 10.0, 0);
    }
    assert_int_equal(decisions_count(*state), 500);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(without_a_history_nothing_is_believed_much),
        TEST(right_calls_raise_it),
        TEST(a_wrong_audit_lowers_it_below_the_threshold),
        TEST(a_wrong_audit_costs_more_than_a_wrong_call_that_was_measured_anyway),
        TEST(it_recovers_when_calls_are_right_again),
        TEST(a_copy_says_the_same),
        TEST(old_decisions_of_the_phase_count_more_than_new_ones_of_another),
        TEST(decisions_of_another_phase_count_less),
        TEST(calls_of_the_other_kind_do_not_count),
        TEST(weak_calls_that_were_wrong_hardly_touch_strong_ones),
        TEST(it_is_always_a_probability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
