#include "proto/verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <string.h>

static void every_verdict_has_a_distinct_name_and_a_meaning(void **state)
{
    (void)state;
    for (uint64_t a = VERDICT_NONE; a <= VERDICT_QUARANTINED; a++) {
        assert_true(verdict_known(a));
        assert_true(strlen(verdict_name(a)) > 0 && strlen(verdict_meaning(a)) > 0);
        assert_string_not_equal(verdict_name(a), "unknown");
        for (uint64_t b = VERDICT_NONE; b < a; b++) {
            assert_string_not_equal(verdict_name(a), verdict_name(b));
        }
    }
}

// The numbers are on the wire and in files: this list may only grow.
static void verdict_numbers_and_names_never_change(void **state)
{
    static const char *const names[] = {"none",         "faster",   "slower",        "equivalent",
                                        "inconclusive", "wrong",    "compile-error", "crash",
                                        "timeout",      "rejected", "quarantined"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_string_equal(verdict_name(i), names[i]);
    }
    assert_int_equal(VERDICT_WRONG, 5);
    assert_int_equal(VERDICT_QUARANTINED, 10);
}

static void exactly_four_verdicts_are_ratios(void **state)
{
    (void)state;
    size_t ratios = 0;
    for (uint64_t v = 0; v < 100; v++) {
        ratios += verdict_is_ratio(v);
    }
    assert_int_equal(ratios, 4);
    assert_true(verdict_is_ratio(VERDICT_FASTER) && verdict_is_ratio(VERDICT_INCONCLUSIVE));
    assert_false(verdict_is_ratio(VERDICT_NONE) || verdict_is_ratio(VERDICT_WRONG));
}

static void unknown_verdict_is_unknown_and_no_ratio(void **state)
{
    static const uint64_t unknown[] = {11, 1000, UINT64_MAX, (uint64_t)1 << 32};

    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_false(verdict_known(unknown[i]));
        assert_false(verdict_is_ratio(unknown[i]));
        assert_string_equal(verdict_name(unknown[i]), "unknown");
        assert_non_null(verdict_meaning(unknown[i]));
    }
}

static void done_cancelled_and_buried_are_terminal(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < JOB_STATE_COUNT; s++) {
        assert_int_equal(job_state_is_terminal(s),
                         s == JOB_DONE || s == JOB_CANCELLED || s == JOB_BURIED);
    }
    assert_string_equal(job_state_name(JOB_QUEUED), "queued");
    assert_string_equal(job_state_name(JOB_BURIED), "buried");
}

static void unknown_job_state_is_not_terminal(void **state)
{
    (void)state;
    assert_false(job_state_is_terminal(JOB_STATE_COUNT));
    assert_false(job_state_is_terminal(UINT64_MAX));
    assert_string_equal(job_state_name(UINT64_MAX), "unknown");
}

static void every_cause_has_a_word_of_its_own(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < JOB_CAUSE_COUNT; i++) {
        assert_string_not_equal(job_cause_name(i), "unknown");
        for (uint64_t j = 0; j < i; j++) {
            assert_string_not_equal(job_cause_name(i), job_cause_name(j));
        }
    }
    assert_string_equal(job_cause_name(JOB_CAUSE_BUDGET), "budget");
    assert_string_equal(job_cause_name(JOB_CAUSE_COUNT), "unknown");
    assert_string_equal(job_cause_name(UINT64_MAX), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verdict_has_a_distinct_name_and_a_meaning),
        cmocka_unit_test(verdict_numbers_and_names_never_change),
        cmocka_unit_test(exactly_four_verdicts_are_ratios),
        cmocka_unit_test(unknown_verdict_is_unknown_and_no_ratio),
        cmocka_unit_test(done_cancelled_and_buried_are_terminal),
        cmocka_unit_test(unknown_job_state_is_not_terminal),
        cmocka_unit_test(every_cause_has_a_word_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
