// Which cached results answer which jobs.
#include "daemon/store/cache.h"
#include "proto/verdict.h"
#include "tests/support/samples/result_sample.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct job_spec spec_of(const char *candidate)
{
    struct job_spec spec;

    message_init(&job_spec_message, &spec);
    spec.kind = JOB_MEASURE;
    spec.problem = digest_of("problem", 7);
    spec.reference = digest_of("reference", 9);
    spec.baseline = digest_of("baseline", 8);
    spec.candidate = digest_of(candidate, strlen(candidate));
    return spec;
}

static bool same_key(const struct job_spec *a, const struct job_spec *b)
{
    struct digest x = cache_key(a, "class", false);
    struct digest y = cache_key(b, "class", false);

    return digest_equal(&x, &y);
}

static void when_to_stop_is_not_in_the_key(void **state)
{
    struct job_spec a = spec_of("x");
    struct job_spec b = spec_of("x");

    (void)state;
    b.anchor_log2 = 0.5;
    b.precision_log2 = 0.1;
    b.max_seconds = 3;
    b.fresh = true;
    b.device_class = (char *)(uintptr_t) "class";
    assert_true(same_key(&a, &b));
}

static void what_is_measured_is_in_the_key(void **state)
{
    struct job_spec a = spec_of("x");
    struct job_spec b = spec_of("y");
    struct digest on = cache_key(&a, "class", false);
    struct digest off = cache_key(&a, "class", true);
    struct digest elsewhere = cache_key(&a, "another", false);

    (void)state;
    assert_false(same_key(&a, &b));
    b = a;
    b.repeat = 1;
    assert_false(same_key(&a, &b));
    b = a;
    b.baseline = digest_of("z", 1);
    assert_false(same_key(&a, &b));
    assert_false(digest_equal(&on, &off));
    assert_false(digest_equal(&on, &elsewhere));
}

static bool answers(uint64_t verdict, double lo, double hi, const struct job_spec *spec)
{
    struct estimate estimate = {.log2 = (lo + hi) / 2, .lo = lo, .hi = hi, .blocks = 8};
    struct result result;

    message_init(&result_message, &result);
    result.verdict = verdict;
    result.speedup = verdict_is_ratio(verdict) ? &estimate : NULL;
    return cache_answers(&result, 10, spec, 30);
}

static void failures_and_decided_ratios_answer_everything(void **state)
{
    struct job_spec spec = spec_of("x");

    (void)state;
    spec.anchor_log2 = 0.3;
    assert_true(answers(VERDICT_WRONG, 0, 0, &spec));
    assert_true(answers(VERDICT_FASTER, 0.1, 0.5, &spec));
    assert_true(answers(VERDICT_SLOWER, -0.5, -0.1, &spec));
    assert_true(answers(VERDICT_EQUIVALENT, -0.003, 0.003, &spec));
    assert_true(answers(VERDICT_EQUIVALENT, -0.006, 0.007, &spec));
    assert_false(answers(VERDICT_EQUIVALENT, -0.006, 0.0073, &spec));
    assert_false(answers(VERDICT_INCONCLUSIVE, -0.006, 0.0073, &spec));
}

static void an_undecided_result_answers_only_who_waits_no_longer(void **state)
{
    struct job_spec spec = spec_of("x");

    (void)state;
    assert_false(answers(VERDICT_INCONCLUSIVE, -0.1, 0.1,
                         &spec)); // the job may take 30 s, the result took 10 s
    assert_false(answers(VERDICT_TIMEOUT, 0, 0, &spec));
    spec.max_seconds = 10;
    assert_true(answers(VERDICT_INCONCLUSIVE, -0.1, 0.1, &spec));
    assert_true(answers(VERDICT_TIMEOUT, 0, 0, &spec));
    spec.max_seconds = 11;
    assert_false(answers(VERDICT_INCONCLUSIVE, -0.1, 0.1, &spec));
    assert_false(answers(VERDICT_TIMEOUT, 0, 0, &spec));
}

static void a_finer_precision_is_measured_again(void **state)
{
    struct job_spec spec = spec_of("x");

    (void)state;
    spec.precision_log2 = 0.001;
    spec.max_seconds = 1;
    assert_false(answers(VERDICT_EQUIVALENT, -0.003, 0.003, &spec));
    assert_true(answers(VERDICT_EQUIVALENT, -0.0009, 0.0009, &spec));
}

static void an_adopted_result_is_marked_and_nonsense_is_not_adopted(void **state)
{
    struct job_spec spec = spec_of("x");
    struct bytes packed = cache_pack(&job_spec_message, &spec);
    struct bytes junk = bytes_copy("junk", 4);

    (void)state;
    struct result result;
    message_init(&result_message, &result);
    result.verdict = VERDICT_CRASH;
    struct bytes stored = cache_pack(&result_message, &result);
    assert_true(cache_adopt(&packed, 10, &stored));
    assert_int_equal(message_read(&result_message, &result, stored.data, stored.len, NULL), 0);
    assert_true(result.cached);
    assert_int_equal(result.verdict, VERDICT_CRASH);
    message_clear(&result_message, &result);
    assert_false(cache_adopt(&packed, 10, &junk));
    assert_false(cache_adopt(&junk, 10, &stored));
    bytes_clear(&stored);
    bytes_clear(&junk);
    bytes_clear(&packed);
}

// A result about something else, or one whose parts disagree, answers nothing.
static void a_result_that_cannot_be_true_is_not_adopted(void **state)
{
    struct job_spec spec = spec_of("x");
    struct result result;

    (void)state;
    for (int lie = 0; lie < 4; lie++) {
        result_sample(&result);
        spec.problem = result.problem;
        spec.candidate = result.candidate;
        result.verdict = lie == 1 ? VERDICT_SLOWER : result.verdict;
        result.problem.byte[0] ^= lie == 2;
        result.candidate.byte[0] ^= lie == 3;
        struct bytes stored = cache_pack(&result_message, &result);
        struct bytes packed = cache_pack(&job_spec_message, &spec);
        assert_int_equal(cache_adopt(&packed, 10, &stored), lie == 0);
        bytes_clear(&packed);
        bytes_clear(&stored);
        message_clear(&result_message, &result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(when_to_stop_is_not_in_the_key),
        cmocka_unit_test(what_is_measured_is_in_the_key),
        cmocka_unit_test(failures_and_decided_ratios_answer_everything),
        cmocka_unit_test(an_undecided_result_answers_only_who_waits_no_longer),
        cmocka_unit_test(a_finer_precision_is_measured_again),
        cmocka_unit_test(an_adopted_result_is_marked_and_nonsense_is_not_adopted),
        cmocka_unit_test(a_result_that_cannot_be_true_is_not_adopted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
