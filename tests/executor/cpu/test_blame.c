// Who is to blame when the baseline fails beside a candidate: the candidate, unless the baseline
// fails without it as well. The timed part of a measurement, in which a test spoils what the
// baseline has done. No verdict here depends on how fast the machine is.
#include "tests/executor/fixture.h"
#include <signal.h>

static struct {
    size_t harmed; // times that the baseline was harmed
} seen;

// Changes what the baseline has computed for the first content that is timed.
static int spoil_output(void *machine, void *data, enum arm_index second, uint64_t content,
                        bool judge, struct err *err)
{
    struct harness *harness = machine;

    if (seen.harmed++ == 0) {
        const size_t y = 1; // the second tensor of the problem
        const float wrong = 1e30f;

        memcpy(harness_kept(harness, ARM_BASELINE, content)->tensor[y], &wrong, sizeof(wrong));
    }
    return measure_cpu.end_pair(machine, data, second, content, judge, err);
}

// Ends the baseline's process before its first timed launch.
static int kill_baseline(void *machine, void *data, enum arm_index arm, uint64_t content,
                         struct launch_time *ret, struct err *err)
{
    struct harness *harness = machine;

    if (arm == ARM_BASELINE && seen.harmed++ == 0) {
        assert_true(harness->runner[ARM_BASELINE].child > 0);
        assert_int_equal(kill(harness->runner[ARM_BASELINE].child, SIGKILL), 0);
    }
    return measure_cpu.launch(machine, data, arm, content, ret, err);
}

static void is_the_candidates(const struct fixture *fixture, const struct measure_ops *ops,
                              const char *what)
{
    struct bytes object = fixture_object(fixture, "candidates/faster.c", false);
    struct measure_plan plan = fixture_measure_plan(fixture, &object);
    struct measure_outcome outcome;
    struct err err = ERR_INIT;

    seen.harmed = 0;
    if (fixture_try_ops(fixture, ops, &plan, &outcome, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(seen.harmed > 0);
    const struct result *result = outcome.result;
    if (result->verdict != VERDICT_QUARANTINED ||
        !strstr(result->reason, "beside this candidate the baseline failed, and not without it") ||
        !strstr(result->reason, what)) {
        fail_msg("%s (%s)", verdict_name(result->verdict), result->reason ? result->reason : "-");
    }
    assert_null(result->speedup);
    message_clear(&measure_outcome_message, &outcome);
    bytes_clear(&object);
}

static void an_output_of_the_baseline_that_is_spoilt_beside_a_candidate(void **state)
{
    struct measure_ops ops = measure_cpu;

    ops.end_pair = spoil_output;
    is_the_candidates(*state, &ops, "the baseline is wrong: y[0] is 1");
}

static void a_baseline_that_is_killed_beside_a_candidate(void **state)
{
    struct measure_ops ops = measure_cpu;

    ops.launch = kill_baseline;
    is_the_candidates(*state, &ops, "SIGKILL");
}

// Such a baseline fails again when it is run alone on the same content: the problem is to blame.
static void a_baseline_that_fails_alone_as_well(void **state)
{
    const struct fixture *fixture = *state;
    static const char *const name[] = {"candidates/wrong_by_content.c",
                                       "candidates/crash_by_content.c"};
    struct bytes object = fixture_object(fixture, "candidates/faster.c", false);

    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        struct measure_plan plan = fixture_measure_plan(fixture, &object);
        struct bytes bad = fixture_object(fixture, name[i], false);
        struct measure_outcome outcome;
        struct err err = ERR_INIT;

        plan.baseline = bad;
        assert_int_equal(fixture_try_measure(fixture, &plan, &outcome, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "the baseline"));
        assert_null(strstr(err.text, "beside this candidate"));
        bytes_clear(&bad);
    }
    bytes_clear(&object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_of_the_baseline_that_is_spoilt_beside_a_candidate),
        cmocka_unit_test(a_baseline_that_is_killed_beside_a_candidate),
        cmocka_unit_test(a_baseline_that_fails_alone_as_well),
    };

    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
