// The router's policies: what is trusted, what is audited, and that it is always the same.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy.h"
#include "contract/bins.h"
#include <math.h>
#include <string.h>

static struct policy_decision decide(const char *name, const struct forecast *forecast,
                                     uint64_t candidate, double audit)
{
    struct policy_input input = {.candidate = candidate,
                                 .seed = 42,
                                 .forecast = forecast,
                                 .forecast_reason = "the worker sleeps",
                                 .confidence = 0.9,
                                 .audit = audit};
    struct policy_decision decision;
    const struct policy *policy = policy_find(name);
    assert_non_null(policy);
    policy->decide(&input, &decision);
    return decision;
}

static void only_confident_forecasts_of_no_improvement_are_trusted(void **state)
{
    static const struct {
        double p_improves, confidence;
        enum decision decision;
    } cases[] = {
        {0.1, 0.95, DECISION_TRUST},   {0.1, 0.9, DECISION_TRUST},
        {0.1, 0.89, DECISION_MEASURE}, {0.49, 0.99, DECISION_TRUST},
        {0.5, 0.99, DECISION_MEASURE}, {0.9, 0.99, DECISION_MEASURE},
        {0.1, 0, DECISION_MEASURE},    {NAN, 0.99, DECISION_MEASURE},
        {0.1, NAN, DECISION_MEASURE},  {-0.1, 0.99, DECISION_MEASURE},
        {0.1, 1.5, DECISION_MEASURE},  {0, 1, DECISION_TRUST},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct forecast forecast = {.p_improves = cases[i].p_improves,
                                    .confidence = cases[i].confidence};
        struct policy_decision decision = decide("threshold", &forecast, 1, 0);
        assert_int_equal(decision.decision, cases[i].decision);
        assert_true(decision.propensity == (decision.decision == DECISION_MEASURE ? 1 : 0));
        assert_true(strlen(decision.reason) > 10);
    }
}

static void without_a_forecast_is_measured_and_says_why(void **state)
{
    (void)state;
    struct policy_decision decision = decide("threshold", NULL, 1, 0.5);
    assert_int_equal(decision.decision, DECISION_MEASURE);
    assert_non_null(strstr(decision.reason, "the worker sleeps"));
    assert_true(isnan(decision.confidence));
}

static void policy_all_trusts_nobody(void **state)
{
    struct forecast forecast = {.p_improves = 0, .confidence = 1};
    (void)state;
    assert_int_equal(decide("all", &forecast, 1, 0).decision, DECISION_MEASURE);
    assert_int_equal(decide("all", NULL, 1, 0).decision, DECISION_MEASURE);
}

static void audits_have_their_share_and_are_reproducible(void **state)
{
    struct forecast doubtful = {.p_improves = 0.1, .confidence = 0.9},
                    sure = {.p_improves = 0.1, .confidence = 0.999};
    size_t doubtful_count = 0, sure_count = 0;
    (void)state;
    for (uint64_t i = 1; i <= 20000; i++) {
        struct policy_decision a = decide("threshold", &doubtful, i, 0.2),
                               b = decide("threshold", &doubtful, i, 0.2);
        struct policy_decision c = decide("threshold", &sure, i, 0.2);
        assert_int_equal(a.decision, b.decision);
        assert_true(fabs(a.propensity - 0.2) < 1e-12);
        assert_true(fabs(c.propensity - 0.1) < 1e-12);
        doubtful_count += a.decision == DECISION_AUDIT;
        sure_count += c.decision == DECISION_AUDIT;
    }
    assert_true(doubtful_count > 3800 && doubtful_count < 4200);
    assert_true(sure_count > 1850 && sure_count < 2150);
    assert_int_equal(decide("threshold", &doubtful, 1, 0).decision, DECISION_TRUST);
    assert_int_equal(decide("threshold", &doubtful, 1, 1).decision, DECISION_AUDIT);
}

static void a_budget_measures_those_that_stand_well(void **state)
{
    struct forecast forecast = {.p_improves = 0.1, .confidence = 0.99, .trained_rows = 20};
    struct policy_input input = {.candidate = 1, .seed = 42, .forecast = &forecast, .share = 0.2};
    struct policy_decision decision;
    const struct policy *policy = policy_find("budget");
    size_t audits = 0;
    (void)state;
    assert_non_null(policy);
    input.compared = 30;
    input.standing = 0.19;
    policy->decide(&input, &decision);
    assert_true(decision.decision == DECISION_MEASURE && decision.propensity == 1);
    input.standing = 0.2;
    policy->decide(&input, &decision);
    assert_true(decision.decision == DECISION_TRUST && decision.propensity == 0);
    input.audit = 0.25;
    for (input.candidate = 1; input.candidate <= 4000; input.candidate++) {
        policy->decide(&input, &decision);
        assert_true(decision.propensity == 0.25);
        audits += decision.decision == DECISION_AUDIT;
    }
    assert_true(audits > 850 && audits < 1150);
    input.compared = 3; // too few to compare with
    policy->decide(&input, &decision);
    assert_int_equal(decision.decision, DECISION_MEASURE);
    input.compared = 30;
    forecast.trained_rows = 0; // nothing is known yet
    policy->decide(&input, &decision);
    assert_int_equal(decision.decision, DECISION_MEASURE);
    input.forecast = NULL;
    input.forecast_reason = "the worker sleeps";
    policy->decide(&input, &decision);
    assert_int_equal(decision.decision, DECISION_MEASURE);
    assert_non_null(strstr(decision.reason, "the worker sleeps"));
}

#define COUNT 100

static void standing_is_among_the_latest_forecasts_beyond_the_incumbent_of_now(void **state)
{
    struct fold_candidate candidate[COUNT] = {{.decided = {0}}};
    struct forecast forecast[COUNT] = {{.id = 0}};
    double bins[COUNT][BIN_COUNT] = {{0}};
    struct fold fold = {.candidate = candidate, .candidate_count = COUNT};
    size_t compared;
    (void)state;
    // Candidate i promises the more the greater i is; every tenth has no forecast.
    for (size_t i = 0; i < COUNT; i++) {
        bins[i][bin_of(-0.6)] = 1 - (double)i / COUNT;
        bins[i][bin_of(1.1)] = (double)i / COUNT;
        forecast[i] = (struct forecast){.p_correct = 1, .p_improves = 0.3, .confidence = 0.9,
                                        .trained_rows = 20, .bins = bins[i],
                                        .bins_count = BIN_COUNT};
        candidate[i].forecast = i % 10 == 9 ? NULL : &forecast[i];
    }
    assert_true(policy_standing(&fold, 99, 99, 0, &compared) == 0);
    assert_int_equal(compared, POLICY_WINDOW);
    assert_true(fabs(policy_standing(&fold, 51, 99, 0, &compared) - 44.0 / 64) < 1e-9);
    assert_true(policy_standing(&fold, 1, 20, 0, &compared) > 0.9);
    assert_int_equal(compared, 18);
    assert_true(policy_standing(&fold, 10, 20, 0, &compared) == 0 && compared == 0); // it has none
    // What is certain to be a little faster is worth nothing beyond a better incumbent.
    memset(bins[97], 0, sizeof(bins[97]));
    bins[97][bin_of(0.3)] = 1;
    assert_true(policy_promise(&forecast[97], 0) > 0.1);
    assert_true(policy_promise(&forecast[97], 0.8) == 0);
    assert_true(policy_promise(&forecast[50], 0.8) > 0.1);
    forecast[50].p_correct = 0;
    assert_true(policy_promise(&forecast[50], 0.8) == 0);
    // Where nobody promises anything nobody stands out.
    for (size_t i = 0; i < COUNT; i++) {
        forecast[i].p_correct = 0;
    }
    assert_true(fabs(policy_standing(&fold, 99, 99, 0, &compared) - 0.5) < 0.01);
}

static void unknown_policy_is_not_found(void **state)
{
    (void)state;
    assert_null(policy_find("hope"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_confident_forecasts_of_no_improvement_are_trusted),
        cmocka_unit_test(without_a_forecast_is_measured_and_says_why),
        cmocka_unit_test(policy_all_trusts_nobody),
        cmocka_unit_test(audits_have_their_share_and_are_reproducible),
        cmocka_unit_test(a_budget_measures_those_that_stand_well),
        cmocka_unit_test(standing_is_among_the_latest_forecasts_beyond_the_incumbent_of_now),
        cmocka_unit_test(unknown_policy_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
