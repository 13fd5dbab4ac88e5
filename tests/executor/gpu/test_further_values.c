// Whole measurements on the fake GPU of problems with further distributions: what is right for
// `values` alone is wrong, and says for which values. Skipped without a compiler.
#include "tests/executor/gpu/gpu_trial_fixture.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define Y 1 // the second tensor
#define NEAR "{\"distribution\": \"uniform\", \"low\": -3, \"high\": 3}"
#define FAR "{\"distribution\": \"uniform\", \"low\": 100000, \"high\": 200000}"
#define FAR_TEXT "with x from uniform(low=100000, high=200000)"
#define TWO_CHECKS TRIAL_CHECK ", {\"n\": 301, \"a\": 2}"

// Gives the plan a problem with these check cases, whose x has the further distributions.
static void set_also(struct trial *trial, const char *problem, const char *also)
{
    static const char values[] = "\"stddev\": 1}";
    const char *at = strstr(problem, values);
    int before = (int)(at - problem + (long)strlen(values));
    char *text = xasprintf("%.*s, \"also\": [%s]%s", before, problem, also, problem + before);

    trial_replace(&trial->plan.problem, trial_text(text));
    free(text);
}

static void what_is_right_for_the_values_alone_is_wrong(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    trial_becomes(trial, trial_kernel("fk_scale_clamp"), VERDICT_EQUIVALENT, "", false);
    set_also(trial, TRIAL_PROBLEM(TRIAL_CHECK), FAR);
    trial_becomes(trial, trial_kernel("fk_scale_clamp"), VERDICT_WRONG, "for n=300 a=2 " FAR_TEXT,
                  false);
    // What is wrong for `values` too says nothing of them.
    trial_becomes(trial, trial_kernel("fk_scale_wrong"), VERDICT_WRONG, "for n=300 a=2; 1 of 300",
                  false);
    set_also(trial, TRIAL_PROBLEM(TWO_CHECKS), NEAR ", " FAR);
    trial->plan.seed = 2;
    trial_becomes(trial, trial_kernel("fk_scale_clamp"), VERDICT_WRONG, "for n=301 a=2 " FAR_TEXT,
                  false);
    trial->plan.seed = 3;
    trial_becomes(trial, trial_kernel("fk_scale_clamp"), VERDICT_WRONG, "for n=300 a=2 " FAR_TEXT,
                  false);
}

static void what_is_right_for_all_of_them_is_timed_as_before(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "noise=0.2");
    uint64_t checks = trial_result(trial, trial_kernel("fk_scale_slow9"))->checks;
    uint64_t launches = trial->outcome.result->launches;
    set_also(trial, TRIAL_PROBLEM(TRIAL_CHECK), FAR);
    trial_becomes(trial, trial_kernel("fk_scale_slow9"), VERDICT_SLOWER, "", false);
    assert_int_equal(trial->outcome.result->checks, checks);
    assert_int_equal(trial->outcome.result->launches, launches);
}

static void a_baseline_that_is_wrong_for_one_of_them_is_the_problems_failure(void **state)
{
    struct trial *trial = *state;

    trial_must_open(trial, "");
    set_also(trial, TRIAL_PROBLEM(TRIAL_CHECK), FAR);
    trial_replace(&trial->plan.baseline, trial_kernel("fk_scale_clamp"));
    trial_fails(trial, trial_kernel("fk_scale"),
                "for n=2000 a=2.5 " FAR_TEXT "; alone it disagrees with the reference");
}

// ---- screening ----

// Differences between the sums of the arms' outputs y, when a benchmark case has been verified.
static struct {
    double accepted, of_content[MEASURE_CONTENTS];
} seen;

static int verify_and_look(void *machine, void *data, bool timed, struct err *err)
{
    const struct gpu_case *of = data;
    int rc = measure_gpu.verify(machine, data, timed, err);

    if (timed) {
        seen.accepted = of->accepted[ARM_CANDIDATE][Y];
        for (size_t i = 0; i < MEASURE_CONTENTS; i++) {
            seen.of_content[i] = fabs(of->last[ARM_CANDIDATE][i].output[Y].sum -
                                      of->last[ARM_BASELINE][i].output[Y].sum);
        }
    }
    return rc;
}

// Timed launches are held against what is usual for `values`. The last bits of values that are a
// hundred thousand times as large would hide anything there.
static void differences_for_further_distributions_are_not_usual(void **state)
{
    struct trial *trial = *state;
    struct measure_ops ops = measure_gpu;

    trial_must_open(trial, "");
    set_also(trial, TRIAL_PROBLEM(TRIAL_CHECK), FAR);
    trial_replace(&trial->plan.baseline, trial_kernel("fk_scale_nondet"));
    trial_replace(&trial->plan.candidate, trial_kernel("fk_scale"));
    struct gpu_harness harness = {.gpu = &trial->gpu, .oracle = &trial->oracle};
    struct measure_outcome outcome;
    ops.verify = verify_and_look;
    if (measure_run(&ops, &harness, &trial->plan, &outcome, &trial->err) != 0) {
        fail_msg("%s", trial->err.text);
    }
    assert_int_equal(outcome.result->verdict, VERDICT_EQUIVALENT);
    message_clear(&measure_outcome_message, &outcome);
    assert_true(seen.of_content[0] > 0 && seen.of_content[1] > 1000 * seen.of_content[0]);
    assert_true(seen.accepted == seen.of_content[0]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_set_up, trial_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_right_for_the_values_alone_is_wrong),
        TEST(what_is_right_for_all_of_them_is_timed_as_before),
        TEST(a_baseline_that_is_wrong_for_one_of_them_is_the_problems_failure),
        TEST(differences_for_further_distributions_are_not_usual),
    };
#undef TEST

    return cmocka_run_group_tests(tests, trial_find_compiler, NULL);
}
