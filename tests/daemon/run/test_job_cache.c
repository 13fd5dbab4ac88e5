// Which jobs share a cached result: what changes the key, and what must not.
#include "daemon/devices/device.h"
#include "daemon/run/job_cache.h"
#include "daemon/run/setup.h"
#include "daemon/store/cache.h"
#include "proto/messages.h"
#include "tests/support/samples/result_sample.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct sample {
    struct job job;
    struct setup setup;
    struct device_class device_class;
};

static void fill(struct sample *s)
{
    memset(s, 0, sizeof(*s));
    s->device_class.name = (char *)(uintptr_t) "cpu";
    s->setup.problem = digest_of("problem", 7);
    s->setup.reference.source = digest_of("reference", 9);
    s->setup.baseline.source = digest_of("baseline", 8);
    s->job.kind = JOB_MEASURE;
    s->job.setup = &s->setup;
    s->job.device_class = &s->device_class;
    s->job.candidate = digest_of("candidate", 9);
    s->job.max_seconds = s->job.precision_log2 = s->job.anchor_log2 = NAN;
}

static bool same_key(const struct sample *s, bool sandbox_off)
{
    struct sample plain;

    fill(&plain);
    struct digest before = job_cache_key(&plain.job, false);
    struct digest after = job_cache_key(&s->job, sandbox_off);
    assert_false(digest_is_zero(&after));
    return digest_equal(&before, &after);
}

static void what_is_measured_where_and_how_is_in_the_key(void **state)
{
    struct sample s;

    (void)state;
    fill(&s);
    assert_true(same_key(&s, false));
    assert_false(same_key(&s, true));
#define CHANGES(assignment)                                                                        \
    fill(&s);                                                                                      \
    assignment;                                                                                    \
    assert_false(same_key(&s, false))
    CHANGES(s.setup.problem.byte[31] ^= 1);
    CHANGES(s.setup.reference.source.byte[0] ^= 0x80);
    CHANGES(s.setup.baseline.source.byte[7] ^= 1);
    CHANGES(s.job.candidate.byte[31] ^= 1);
    CHANGES(s.device_class.name = (char *)(uintptr_t) "cpu2");
    CHANGES(s.device_class.name = (char *)(uintptr_t) "");
    CHANGES(s.job.repeat = 1);
    CHANGES(s.job.repeat = UINT64_MAX);
    CHANGES(s.job.max_launches = 16);
    CHANGES(s.job.unsealed = true);
    CHANGES(s.job.kind = JOB_COMPILE);
#undef CHANGES
}

static void exchanging_reference_and_baseline_is_another_measurement(void **state)
{
    struct sample s;

    (void)state;
    fill(&s);
    struct digest reference = s.setup.reference.source;
    s.setup.reference.source = s.setup.baseline.source;
    s.setup.baseline.source = reference;
    assert_false(same_key(&s, false));
}

static void whose_job_it_is_and_how_it_goes_is_not_in_the_key(void **state)
{
    struct search search = {.tenant = (char *)(uintptr_t) "t", .name = (char *)(uintptr_t) "s"};
    struct sample s;

    (void)state;
    fill(&s);
    s.job.id = 7;
    s.job.search = &search;
    s.job.key = (char *)(uintptr_t) "k";
    s.job.priority = 3;
    s.job.attempt = 1;
    s.job.fresh = true;
    s.job.anchor_log2 = 0.5;
    s.job.precision_log2 = 0.01;
    s.job.max_seconds = 5;
    s.job.wanted_class = 1;
    s.job.state = JOB_RUNNING;
    s.job.spec = digest_of("spec", 4);
    s.setup.class_name = (char *)(uintptr_t) "cpu"; // asked for by name, and the same class
    s.setup.held_s = 3;
    s.setup.reference.compiled = true;
    assert_true(same_key(&s, false));
}

static void the_question_carries_what_decides_and_nothing_else(void **state)
{
    struct sample s;

    (void)state;
    fill(&s);
    s.job.max_seconds = 5;
    s.job.precision_log2 = 0.01;
    s.job.anchor_log2 = 0.25;
    s.job.max_launches = 64;
    s.job.fresh = true;
    struct bytes packed = job_cache_question(&s.job);
    struct job_spec spec;
    assert_int_equal(message_read(&job_spec_message, &spec, packed.data, packed.len, NULL), 0);
    assert_int_equal(spec.kind, JOB_MEASURE);
    assert_float_equal(spec.max_seconds, 5, 0);
    assert_float_equal(spec.precision_log2, 0.01, 0);
    assert_int_equal(spec.max_launches, 64);
    assert_true(isnan(spec.anchor_log2));
    assert_false(spec.fresh);
    assert_true(digest_equal(&spec.candidate, &s.job.candidate));
    message_clear(&job_spec_message, &spec);
    bytes_clear(&packed);
}

// A cached result with an interval of this half-width, measured under a cap of 10 s.
static bool is_answered(const struct sample *s, double half, double middle)
{
    struct result result;

    result_sample(&result);
    result_sample_move(&result, middle);
    result_sample_widen(&result, half);
    result.verdict = middle > half ? VERDICT_FASTER : VERDICT_INCONCLUSIVE;
    result.problem = s->setup.problem;
    result.candidate = s->job.candidate;
    struct bytes cached = cache_pack(&result_message, &result);
    message_clear(&result_message, &result);
    struct bytes question = job_cache_question(&s->job);
    bool answers = cache_adopt(&question, 10, &cached);
    bytes_clear(&question);
    bytes_clear(&cached);
    return answers;
}

static void precision_and_cap_decide_whether_a_cached_result_will_do(void **state)
{
    struct sample s;

    (void)state;
    fill(&s);
    assert_true(is_answered(&s, 0.003, 0));  // as narrow as the default asks for
    assert_true(is_answered(&s, 0.02, 0.5)); // wide, but decided
    assert_false(is_answered(&s, 0.02, 0));  // the daemon's cap is longer than the old one
    s.job.precision_log2 = 0.02;
    assert_true(is_answered(&s, 0.02, 0));
    s.job.precision_log2 = 0.01;
    s.job.max_seconds = 10;
    assert_true(is_answered(&s, 0.02, 0)); // it would not take longer
    s.job.max_seconds = 10.5;
    assert_false(is_answered(&s, 0.02, 0));
    s.job.max_seconds = 10;
    s.job.precision_log2 = 0.001;
    assert_false(is_answered(&s, 0.003, 0)); // finer than the default
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_measured_where_and_how_is_in_the_key),
        cmocka_unit_test(exchanging_reference_and_baseline_is_another_measurement),
        cmocka_unit_test(whose_job_it_is_and_how_it_goes_is_not_in_the_key),
        cmocka_unit_test(the_question_carries_what_decides_and_nothing_else),
        cmocka_unit_test(precision_and_cap_decide_whether_a_cached_result_will_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
