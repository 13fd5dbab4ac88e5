// The router's policies: what is trusted, what is audited, and that it is always the same.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy.h"
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
        cmocka_unit_test(unknown_policy_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
