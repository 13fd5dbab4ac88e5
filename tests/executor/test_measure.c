// The order of a measurement's steps, on a fake machine that launches nothing: which step follows
// which, what ends it, and what the outcome says.
#include "tests/executor/measure_fixture.h"
#include <stdio.h>

static struct measure_plan plan_of(bool control)
{
    struct measure_plan plan;

    message_init(&measure_plan_message, &plan);
    plan.problem =
        (struct bytes){.data = (unsigned char *)(uintptr_t)PROBLEM, .len = strlen(PROBLEM)};
    plan.seed = 5;
    plan.max_seconds = 1e6; // so that the speed of this machine decides nothing
    plan.control = control;
    return plan;
}

// Runs a measurement that must have an outcome. The caller clears it.
static struct measure_outcome run(const struct measure_ops *with, struct fake *fake,
                                  const struct measure_plan *plan)
{
    struct measure_outcome ret;
    struct err err = ERR_INIT;

    if (measure_run(with, fake, plan, &ret, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(fake->closed);
    return ret;
}

// Of the check cases, 0 has 100 elements, 1 has 1 and 2 has 7, as many as each hidden case.
static void the_steps_follow_each_other(void **state)
{
    struct measure_plan plan = plan_of(true);
    struct fake fake = good();
    struct measure_outcome ret = run(&ops, &fake, &plan);

    (void)state;
    assert_string_equal(fake.log.data,
                        "open start(4) check 1 check 2 check 1000 check 1001 check 1002 check 1003 "
                        "check 0 bench 2000 bench 2001 time 2000 time 2001 "
                        "alone alone control 2000 time 2000 outcome");
    assert_int_equal(ret.result->verdict, VERDICT_FASTER);
    assert_null(ret.result->reason);
    assert_int_equal(ret.result->cases_count, 2);
    assert_string_equal(ret.result->cases[1].params, "N=2000");
    assert_true(isnan(ret.result->cases[1].floor_ns));
    assert_true(fabs(ret.result->speedup->log2 - 1) < 1e-9);
    assert_non_null(ret.result->control);
    assert_true(fabs(ret.result->control->log2) < 1e-9);
    assert_true(isnan(ret.result->overhead_ns));
    assert_true(isnan(ret.result->seconds->queue) && ret.result->seconds->held >= 0);
    assert_int_equal(ret.result->seed, 5);
    assert_string_equal(ret.result->trust, "none");
    assert_true(ret.retire);
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

static void without_control_there_is_none(void **state)
{
    struct measure_plan plan = plan_of(false);
    struct fake fake = good();
    struct measure_outcome ret = run(&ops, &fake, &plan);

    (void)state;
    assert_null(strstr(fake.log.data, "control"));
    assert_null(ret.result->control);
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

static const char *const steps[] = {"open",       "start",  "data",  "check", "bench",
                                    "superblock", "launch", "block", "last",  "control"};

static void the_candidate_s_failure_ends_it_with_a_verdict(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct measure_plan plan = plan_of(true);
        struct fake fake = good();
        char *reason = xasprintf("%s it is", steps[i]);

        fake.failing = steps[i];
        fake.with = MEASURE_STOP;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        assert_int_equal(ret.result->verdict, VERDICT_CRASH);
        assert_string_equal(ret.result->reason, reason);
        // What was timed before is reported.
        assert_int_equal(ret.result->cases_count, i < 9 ? 0 : 2);
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
        free(reason);
    }
}

// After whichever block it is stopped, there is an estimate of both cases together or none at all.
static void a_candidate_that_fails_while_it_is_timed_has_no_half_estimate(void **state)
{
    (void)state;
    for (size_t blocks = 0; blocks < 24; blocks++) {
        struct measure_plan plan = plan_of(false);
        struct fake fake = good();

        fake.failing = "launch";
        fake.with = MEASURE_STOP;
        fake.succeeding = blocks;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        if (ret.result->verdict == VERDICT_CRASH) {
            assert_null(ret.result->speedup);
            assert_int_equal(ret.result->cases_count, 0);
        } else { // there are no more blocks
            assert_true(blocks > 10);
            assert_true(ret.result->speedup->blocks > 0);
        }
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

static void an_error_gives_no_outcome(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct measure_plan plan = plan_of(true);
        struct fake fake = good();
        char *text = xasprintf("%s has failed", steps[i]);

        fake.failing = steps[i];
        fake.with = ERR_SYSTEM;
        struct measure_outcome ret;
        struct err err = ERR_INIT;
        assert_int_equal(measure_run(&ops, &fake, &plan, &ret, &err), ERR_SYSTEM);
        assert_string_equal(err.text, text);
        assert_null(strstr(fake.log.data, "outcome"));
        assert_true(fake.closed);
        strbuf_release(&fake.log);
        free(text);
    }
}

// What a case is named by stays its own, so the least work is first without any other difference.
static void a_wrong_candidate_ends_at_the_case_that_is_least_work(void **state)
{
    struct measure_plan plan = plan_of(true);
    struct fake fake = good();

    (void)state;
    fake.failing = "check";
    fake.with = MEASURE_STOP;
    struct measure_outcome ret = run(&ops, &fake, &plan);
    assert_string_equal(fake.log.data, "open start(4) check 1 outcome");
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

static void a_problem_that_cannot_be_read_is_an_error(void **state)
{
    struct measure_plan plan = plan_of(false);
    struct fake fake = good();

    (void)state;
    plan.problem = (struct bytes){.data = (unsigned char *)(uintptr_t) "{}", .len = 2};
    struct measure_outcome ret;
    struct err err = ERR_INIT;
    assert_true(measure_run(&ops, &fake, &plan, &ret, &err) < 0);
    assert_int_equal(fake.log.len, 0);
    assert_true(fake.closed);
    strbuf_release(&fake.log);
}

static void times_below_the_floor_are_quarantined(void **state)
{
    struct measure_plan plan = plan_of(true);
    struct fake fake = good();

    (void)state;
    fake.peaks = (struct measure_peaks){.flops = NAN, .bytes = 8e8, .cached_bytes = 4000};
    struct measure_outcome ret = run(&ops, &fake, &plan); // (8 * 2000 - 4000) / 8e8 s
    assert_int_equal(ret.result->verdict, VERDICT_QUARANTINED);
    assert_string_equal(ret.result->reason, "the candidate took 10000 ns for N=2000, less than the "
                                            "15000 ns that this fake needs at least");
    assert_true(fabs(ret.result->cases[0].floor_ns - 5000) < 1e-6);
    assert_null(strstr(fake.log.data, "control"));
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

static void who_hides_time_is_quarantined_and_who_is_disturbed_is_not(void **state)
{
    struct measure_plan plan = plan_of(false);

    (void)state;
    for (int escaped = 0; escaped < 2; escaped++) {
        struct fake fake = good();

        fake.state = escaped ? BLOCK_ESCAPED : BLOCK_DISTURBED;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        assert_int_equal(ret.result->verdict, escaped ? VERDICT_QUARANTINED : VERDICT_INCONCLUSIVE);
        assert_string_equal(ret.result->reason,
                            escaped ? "the candidate took time that its clock does not show in 8 "
                                      "of 8 blocks, for N=1000"
                                    : "17 of 17 blocks were disturbed, for N=1000; the fake is "
                                      "disturbed");
        assert_int_equal(ret.result->cases_count, escaped ? 2 : 0); // disturbed blocks do not count
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

// That is said in the result, since the times are not all as they were read.
static void arms_that_differ_in_their_clocks_have_a_verdict(void **state)
{
    struct measure_plan plan = plan_of(false);

    (void)state;
    for (int unlike = 0; unlike < 2; unlike++) {
        struct fake fake = good();

        fake.state = unlike ? BLOCK_UNLIKE : BLOCK_COUNTS;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        assert_int_equal(ret.result->verdict, VERDICT_FASTER);
        assert_string_equal(ret.result->clock,
                            unlike ? "a fake's, 16 blocks at unlike frequencies" : "a fake's");
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

static void too_little_time_says_so(void **state)
{
    struct measure_plan plan = plan_of(false);

    (void)state;
    plan.max_seconds = 0;
    struct fake fake = good();
    fake.ns[ARM_CANDIDATE] = 14000;
    fake.noise = 0.9;
    struct measure_outcome ret = run(&ops, &fake, &plan);
    assert_int_equal(ret.result->verdict, VERDICT_INCONCLUSIVE);
    assert_string_equal(ret.result->reason, "no decision within 0 seconds of timing");
    message_clear(&measure_outcome_message, &ret);
    strbuf_release(&fake.log);
}

// Seconds that inputs take are not counted as timing, unless the machine says that they are.
static void inputs_are_accounted_for_once(void **state)
{
    struct measure_plan plan = plan_of(false);
    struct measure_ops both = ops;

    (void)state;
    for (int timing = 0; timing < 2; timing++) {
        struct fake fake = good();
        fake.inputs_s = 1e6; // more than the whole test can take
        both.inputs_are_timing = timing;
        struct measure_outcome ret = run(&both, &fake, &plan);
        assert_int_equal(ret.result->seconds->time >= 0, timing);
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

// Only a candidate that seems to be faster can have gained by it.
static void who_hinders_the_baseline_is_quarantined(void **state)
{
    struct measure_plan plan = plan_of(false);

    (void)state;
    for (int hindered = 0; hindered < 2; hindered++) {
        struct fake fake = good();
        fake.ns[ARM_BASELINE] = 2e6;
        fake.alone_ns = hindered ? 1.5e6 : 1.6e6;
        struct measure_outcome ret = run(&ops, &fake, &plan);
        assert_int_equal(ret.result->verdict, hindered ? VERDICT_QUARANTINED : VERDICT_FASTER);
        message_clear(&measure_outcome_message, &ret);
        strbuf_release(&fake.log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_steps_follow_each_other),
        cmocka_unit_test(without_control_there_is_none),
        cmocka_unit_test(the_candidate_s_failure_ends_it_with_a_verdict),
        cmocka_unit_test(a_candidate_that_fails_while_it_is_timed_has_no_half_estimate),
        cmocka_unit_test(an_error_gives_no_outcome),
        cmocka_unit_test(a_wrong_candidate_ends_at_the_case_that_is_least_work),
        cmocka_unit_test(a_problem_that_cannot_be_read_is_an_error),
        cmocka_unit_test(times_below_the_floor_are_quarantined),
        cmocka_unit_test(who_hides_time_is_quarantined_and_who_is_disturbed_is_not),
        cmocka_unit_test(who_hinders_the_baseline_is_quarantined),
        cmocka_unit_test(arms_that_differ_in_their_clocks_have_a_verdict),
        cmocka_unit_test(too_little_time_says_so),
        cmocka_unit_test(inputs_are_accounted_for_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
