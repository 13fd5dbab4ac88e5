// Results whose parts disagree. Each test takes a result that is believed and changes one thing.
#include "proto/result_check.h"
#include "proto/verdict.h"
#include "tests/support/samples/result_sample.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct result_expectation expectation(void)
{
    return (struct result_expectation){.problem = digest_of("problem", 7),
                                       .candidate = digest_of("candidate", 9),
                                       .precision_log2 = 0.0036022};
}

static int set_up(void **state)
{
    struct result *result = xcalloc(1, sizeof(*result));

    result_sample(result);
    *state = result;
    return 0;
}

static int tear_down(void **state)
{
    message_clear(&result_message, *state);
    free(*state);
    return 0;
}

static void assert_believed(const struct result *result)
{
    const struct result_expectation about = expectation();
    struct err err = ERR_INIT;

    if (result_check(result, &about, &err) != 0 || result_check(result, NULL, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static void assert_refused(const struct result *result, const char *says)
{
    const struct result_expectation about = expectation();
    struct err err = ERR_INIT;

    assert_int_equal(result_check(result, &about, &err), ERR_PROTOCOL);
    if (!strstr(err.text, says)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    }
}

static void every_verdict_that_follows_from_its_interval_is_believed(void **state)
{
    static const double log2s[] = {0.5, -0.5, 0, 12, -12, 0.0101, -0.0101};
    struct result *result = *state;

    for (size_t i = 0; i < ARRAY_LEN(log2s); i++) {
        result_sample_move(result, log2s[i]);
        assert_believed(result);
    }
    result_sample_move(result, 0.009);
    result->verdict = VERDICT_INCONCLUSIVE;
    assert_believed(result);
}

// As when every block was disturbed.
static void without_any_estimate_a_reason_makes_it_inconclusive_and_nothing_else(void **state)
{
    struct result *result = *state;

    for (size_t i = 0; i < result->cases_count; i++) {
        message_clear(&case_result_message, &result->cases[i]);
    }
    free(result->speedup);
    result->speedup = NULL;
    result->cases_count = 0;
    free(result->reason);
    result->reason = xstrdup("18 of 19 blocks were disturbed");
    result->verdict = VERDICT_INCONCLUSIVE;
    assert_believed(result);
    result->verdict = VERDICT_EQUIVALENT;
    assert_refused(result, "verdict equivalent without an estimate");
    result->verdict = VERDICT_INCONCLUSIVE;
    free(result->reason);
    result->reason = NULL;
    assert_refused(result, "verdict inconclusive without an estimate");
}

static void a_verdict_against_its_interval_is_refused(void **state)
{
    static const struct {
        double log2;
        uint64_t verdict;
    } wrong[] = {{-0.5, VERDICT_FASTER},      {0, VERDICT_FASTER},
                 {0.5, VERDICT_SLOWER},       {0, VERDICT_SLOWER},
                 {0.5, VERDICT_INCONCLUSIVE}, {-0.5, VERDICT_INCONCLUSIVE},
                 {0.5, VERDICT_EQUIVALENT},   {-0.5, VERDICT_EQUIVALENT}};
    struct result *result = *state;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        result_sample_move(result, wrong[i].log2);
        result->verdict = wrong[i].verdict;
        assert_refused(result, verdict_name(wrong[i].verdict));
    }
}

// The method calls a precise estimate within the precision no difference, also one whose interval
// excludes 0.
static void a_small_difference_within_the_precision_is_equivalent(void **state)
{
    struct result *result = *state;
    struct result_expectation about = expectation();

    result_sample_move(result, 0.0115); // above the half-width, and 1.15 times it
    result->verdict = VERDICT_EQUIVALENT;
    assert_believed(result);
    result_sample_move(result, 0.012);
    result->verdict = VERDICT_EQUIVALENT;
    assert_refused(result, "equivalent");
    about.precision_log2 = 0.012;
    assert_int_equal(result_check(result, &about, NULL), 0);
}

static void a_speedup_that_its_cases_do_not_give_is_refused(void **state)
{
    struct result *result = *state;

    result->speedup->log2 += 0.001;
    assert_refused(result, "but the cases give 0.5");
    result_sample_move(result, 0.5);
    result->cases[1].speedup->log2 += 0.001;
    assert_refused(result, "but the cases give 0.50075");
    result_sample_move(result, 0.5);
    result->speedup->hi += 0.01;
    assert_refused(result, "an interval of 0.03");
    result_sample_move(result, 0.5);
    result->speedup->blocks++;
    assert_refused(result, "49 blocks, but the cases have 48");
    result->speedup->blocks--;
    result->cases[0].weight = 0.5;
    assert_refused(result, "sum to 1.25");
    result->cases[0].weight = NAN;
    assert_believed(result);
}

// What is too large for a message is cut, and then no sum says anything.
static void an_estimate_that_was_cut_is_not_compared(void **state)
{
    struct result *result = *state;

    result_sample_move(result, 0);
    result->verdict = VERDICT_INCONCLUSIVE;
    result->speedup->lo = result->cases[0].speedup->lo = -RESULT_LOG2_MAX;
    result->speedup->hi = result->cases[0].speedup->hi = RESULT_LOG2_MAX;
    assert_believed(result);
}

static void a_speedup_that_its_times_contradict_is_refused(void **state)
{
    struct result *result = *state;

    result->cases[1].candidate_ns->p10 *= 16;
    result->cases[1].candidate_ns->p50 *= 16;
    result->cases[1].candidate_ns->p90 *= 16;
    assert_refused(result, "N=16: a log2 speedup of 0.5, but the times give -3.5");
    result_sample_move(result, 0.5);
    result->baseline_ns->p50 *= 1.01;
    assert_refused(result, "other times than its first case");
    result->baseline_ns->p50 = NAN;
    assert_believed(result);
    result_sample_move(result, 0.5);
    result->candidate_ns->p90 *= 1.01;
    assert_refused(result, "other times than its first case");
}

static void a_ratio_that_nobody_checked_is_refused(void **state)
{
    struct result *result = *state;

    result->checks = 0;
    assert_refused(result, "of which 0 were checked");
    result->verdict = VERDICT_QUARANTINED; // keeps its estimate as evidence
    assert_believed(result);
    result_sample_move(result, 0.5);
    result->checks = 110;
    result->launches = 0;
    assert_refused(result, "from 0 launches");
}

static void a_ratio_with_an_error_above_its_bound_is_refused(void **state)
{
    struct result *result = *state;

    result->max_error = 4;
    assert_believed(result);
    result->max_error = 4.001;
    assert_refused(result, "an error of 4.001, where 4 is allowed");
    result->max_error = INFINITY;
    assert_refused(result, "an error of inf");
    result->verdict = VERDICT_WRONG;
    assert_believed(result);
}

static void a_ratio_of_what_did_not_compile_is_refused(void **state)
{
    struct result *result = *state;

    result->compiled = xcalloc(1, sizeof(*result->compiled));
    message_init(&compiled_message, result->compiled);
    assert_believed(result);
    result->compiled->verdict = VERDICT_COMPILE_ERROR;
    assert_refused(result, "did not compile");
    result->verdict = VERDICT_COMPILE_ERROR;
    assert_believed(result);
    result->compiled->verdict = VERDICT_FASTER;
    assert_refused(result, "verdict 1");
    result->compiled->verdict = VERDICT_COMPILE_ERROR;
    result->compiled->seconds = INFINITY;
    assert_refused(result, "seconds out of range");
}

static void numbers_that_are_not_finite_are_refused(void **state)
{
    struct result *result = *state;
    struct fact reading = {.name = (char *)(uintptr_t) "temperature_c", .value = 60};

    result->measured_at = INFINITY;
    assert_refused(result, "a date out of range");
    result->measured_at = 1e9;
    result->conditions = &reading;
    result->conditions_count = 1;
    assert_believed(result);
    reading.value = INFINITY;
    assert_refused(result, "a reading that is infinite");
    result->conditions = NULL;
    result->conditions_count = 0;
}

static void a_result_of_another_problem_or_candidate_is_refused(void **state)
{
    struct result *result = *state;

    result->problem.byte[31] ^= 1;
    assert_refused(result, "another problem");
    assert_int_equal(result_check(result, NULL, NULL), 0);
    result->problem.byte[31] ^= 1;
    result->candidate.byte[0] ^= 1;
    assert_refused(result, "another candidate");
    result->problem = result->candidate = (struct digest){0};
    assert_believed(result); // it names none
}

static void a_compilation_has_an_object_or_a_verdict(void **state)
{
    struct compiled compiled;
    struct err err = ERR_INIT;

    (void)state;
    message_init(&compiled_message, &compiled);
    assert_int_equal(compiled_check(&compiled, &err), ERR_PROTOCOL);
    assert_string_equal(err.text, "compiled, but no object");
    compiled.object = digest_of("object", 6);
    assert_int_equal(compiled_check(&compiled, NULL), 0);
    compiled.verdict = VERDICT_SLOWER;
    assert_int_equal(compiled_check(&compiled, NULL), ERR_PROTOCOL);
    compiled.verdict = VERDICT_REJECTED;
    compiled.object = (struct digest){0};
    assert_int_equal(compiled_check(&compiled, NULL), 0);
    compiled.seconds = -1;
    assert_int_equal(compiled_check(&compiled, NULL), ERR_PROTOCOL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_verdict_that_follows_from_its_interval_is_believed),
        TEST(without_any_estimate_a_reason_makes_it_inconclusive_and_nothing_else),
        TEST(a_verdict_against_its_interval_is_refused),
        TEST(a_small_difference_within_the_precision_is_equivalent),
        TEST(a_speedup_that_its_cases_do_not_give_is_refused),
        TEST(an_estimate_that_was_cut_is_not_compared),
        TEST(a_speedup_that_its_times_contradict_is_refused),
        TEST(a_ratio_that_nobody_checked_is_refused),
        TEST(a_ratio_with_an_error_above_its_bound_is_refused),
        TEST(a_ratio_of_what_did_not_compile_is_refused),
        TEST(numbers_that_are_not_finite_are_refused),
        TEST(a_result_of_another_problem_or_candidate_is_refused),
        TEST(a_compilation_has_an_object_or_a_verdict),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
