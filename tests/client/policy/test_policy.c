// Policies: what is trusted, what is audited, and that the same view gives the same decision.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/policy.h"
#include "common/mem.h"
#include "proto/bins.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Decides about candidate number `candidate`, which has this forecast.
static struct policy_decision decide(const char *name, const struct forecast *forecast,
                                     uint64_t candidate, double audit)
{
    struct run_state_candidate *all = xcalloc((size_t)candidate, sizeof(*all));
    struct run_state run_state = {.started = {.seed = 42, .confidence = 0.9, .audit = audit},
                                  .candidate = all,
                                  .candidate_count = (size_t)candidate};
    struct policy_view view = {
        .run_state = &run_state, .candidate = candidate, .first = candidate, .last = candidate};
    const struct policy *policy = policy_find(name);
    assert_non_null(policy);
    for (uint64_t id = 1; id < candidate; id++) {
        all[id - 1].decided.decision = DECISION_MEASURE;
    }
    all[candidate - 1].forecast = (struct forecast *)(uintptr_t)forecast;
    char reason[] = "the worker sleeps";
    all[candidate - 1].forecast_reason = reason;
    struct policy_decision decision;
    policy->decide(&view, &decision);
    free(all);
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
    (void)state;
    struct forecast forecast = {.p_improves = 0, .confidence = 1};
    assert_int_equal(decide("all", &forecast, 1, 0).decision, DECISION_MEASURE);
    assert_int_equal(decide("all", NULL, 1, 0).decision, DECISION_MEASURE);
}

static void audits_have_their_share_and_are_reproducible(void **state)
{
    struct forecast doubtful = {.p_improves = 0.1, .confidence = 0.9},
                    sure = {.p_improves = 0.1, .confidence = 0.999};
    size_t doubtful_count = 0, sure_count = 0;
    (void)state;
    for (uint64_t i = 101; i <= 4100; i++) {
        struct policy_decision a = decide("threshold", &doubtful, i, 0.2),
                               b = decide("threshold", &doubtful, i, 0.2);
        struct policy_decision c = decide("threshold", &sure, i, 0.2);
        assert_int_equal(a.decision, b.decision);
        assert_true(fabs(a.propensity - 0.2) < 1e-12);
        assert_true(fabs(c.propensity - 0.1) < 1e-12);
        doubtful_count += a.decision == DECISION_AUDIT;
        sure_count += c.decision == DECISION_AUDIT;
    }
    assert_true(doubtful_count > 700 && doubtful_count < 900);
    assert_true(sure_count > 325 && sure_count < 475);
    assert_int_equal(decide("threshold", &doubtful, 1, 0).decision, DECISION_TRUST);
    assert_int_equal(decide("threshold", &doubtful, 5, 1).decision, DECISION_AUDIT);
    assert_true(decide("threshold", &doubtful, 1, 1).propensity == 0); // nothing was measured yet
}

// However many are trusted, the audits during the search are a quarter of what is allowed in all.
static void audits_during_the_search_leave_most_for_its_end(void **state)
{
    enum { MEASURED = 100, ALL = 1100 };
    struct forecast forecast = {.p_improves = 0.1, .confidence = 0.95};
    struct run_state_candidate *candidate = xcalloc(ALL, sizeof(*candidate));
    struct run_state run_state = {.started = {.seed = 42, .confidence = 0.9, .audit = 0.05},
                                  .candidate = candidate,
                                  .candidate_count = ALL};
    double sum = 0;
    (void)state;
    for (uint64_t id = 1; id <= ALL; id++) {
        candidate[id - 1].decided.decision = DECISION_MEASURE;
        if (id > MEASURED) {
            struct policy_view view = {
                .run_state = &run_state, .candidate = id, .first = id, .last = id};
            struct policy_decision decision;
            candidate[id - 1].forecast = &forecast;
            policy_find("threshold")->decide(&view, &decision);
            candidate[id - 1].decided = (struct run_decided){.decision = decision.decision,
                                                             .propensity = decision.propensity};
            sum += decision.propensity;
        }
    }
    assert_true(sum > 1.2 && sum < 1.2501);
    free(candidate);
}

// The choice was the decision, however unlikely the best of all points is to improve.
static void what_a_screening_has_chosen_is_measured(void **state)
{
    struct forecast forecast = {
        .p_improves = 0.01, .confidence = 0.99, .trained_rows = 30, .expected_improvement = 0.001};
    struct run_state_candidate one = {.proposed = {.screened = 500}, .forecast = &forecast};
    struct run_state run_state = {
        .started = {.confidence = 0.9, .audit = 0}, .candidate = &one, .candidate_count = 1};
    struct policy_view view = {.run_state = &run_state, .candidate = 1, .first = 1, .last = 1};
    struct policy_decision decision;
    (void)state;
    policy_find("rank")->decide(&view, &decision);
    assert_int_equal(decision.decision, DECISION_MEASURE);
    assert_non_null(strstr(decision.reason, "chosen from 500 points"));
    one.proposed.screened = 0;
    policy_find("rank")->decide(&view, &decision);
    assert_int_equal(decision.decision, DECISION_TRUST);
}

// As `threshold` does: candidates of files, those of language models and the first of a search.
static void what_was_not_screened_goes_by_its_forecast(void **state)
{
    struct forecast sure = {.p_improves = 0.1, .confidence = 0.95},
                    doubtful = {.p_improves = 0.1, .confidence = 0.5};
    (void)state;
    assert_int_equal(decide("rank", &sure, 1, 0).decision, DECISION_TRUST);
    assert_int_equal(decide("rank", &doubtful, 1, 0).decision, DECISION_MEASURE);
    assert_int_equal(decide("rank", NULL, 1, 0).decision, DECISION_MEASURE);
}

#define COUNT 100

// The expected improvement of candidate i + 1 rises with i. Every tenth candidate has no forecast.
struct many {
    struct run_state_candidate candidate[COUNT];
    struct forecast forecast[COUNT];
    double bins[COUNT][BIN_COUNT];
    struct run_state run_state;
};

static void make_many(struct many *many)
{
    *many = (struct many){.run_state = {.candidate = many->candidate, .candidate_count = COUNT}};
    many->run_state.started.seed = 42;
    for (size_t i = 0; i < COUNT; i++) {
        many->bins[i][bin_of(-0.6)] = 1 - (double)i / COUNT;
        many->bins[i][bin_of(1.1)] = (double)i / COUNT;
        many->forecast[i] = (struct forecast){.p_correct = 1,
                                              .p_improves = 0.3,
                                              .confidence = 0.9,
                                              .trained_rows = 20,
                                              .bins = many->bins[i],
                                              .bins_count = BIN_COUNT};
        many->candidate[i].forecast = i % 10 == 9 ? NULL : &many->forecast[i];
    }
}

static double rank(const struct many *many, uint64_t candidate, uint64_t last, size_t *ret_compared)
{
    struct policy_view view = {.run_state = &many->run_state, .candidate = candidate, .last = last};
    return policy_share_ahead(&view, ret_compared);
}

static void standing_is_among_the_latest_forecasts_beyond_the_incumbent_of_now(void **state)
{
    (void)state;
    struct many many;
    make_many(&many);
    size_t compared;
    assert_true(rank(&many, 99, 99, &compared) == 0);
    assert_int_equal(compared, POLICY_WINDOW);
    assert_true(fabs(rank(&many, 51, 99, &compared) - 44.0 / 64) < 1e-9);
    assert_true(rank(&many, 1, 20, &compared) > 0.9);
    assert_int_equal(compared, 18);
    assert_true(rank(&many, 10, 20, &compared) == 0 && compared == 0); // it has no forecast
    // A candidate that is certain to be a little faster has no expected improvement beyond a better
    // incumbent.
    memset(many.bins[97], 0, sizeof(many.bins[97]));
    many.bins[97][bin_of(0.3)] = 1;
    assert_true(policy_expected_improvement(&many.forecast[97], 0) > 0.1);
    assert_true(policy_expected_improvement(&many.forecast[97], 0.8) == 0);
    assert_true(policy_expected_improvement(&many.forecast[50], 0.8) > 0.1);
    many.forecast[50].p_correct = 0;
    assert_true(policy_expected_improvement(&many.forecast[50], 0.8) == 0);
    // Where no candidate has an expected improvement, all rank equally.
    for (size_t i = 0; i < COUNT; i++) {
        many.forecast[i].p_correct = 0;
    }
    assert_true(fabs(rank(&many, 99, 99, &compared) - 0.5) < 0.01);
}

static struct policy_decision decide_among(const char *name, struct many *many, uint64_t candidate,
                                           uint64_t first, uint64_t last)
{
    struct policy_view view = {
        .run_state = &many->run_state, .candidate = candidate, .first = first, .last = last};
    struct policy_decision decision;
    policy_find(name)->decide(&view, &decision);
    return decision;
}

static void a_budget_measures_those_that_stand_well(void **state)
{
    (void)state;
    struct many many;
    make_many(&many);
    many.run_state.started.share = 0.2;
    many.run_state.started.confidence = 0.95;
    struct policy_decision decision = decide_among("budget", &many, 97, 97, 99);
    assert_true(decision.decision == DECISION_MEASURE && decision.propensity == 1);
    decision = decide_among("budget", &many, 58, 97, 99);
    assert_true(decision.decision == DECISION_TRUST && decision.propensity == 0);
    many.run_state.started.audit = 0.25;
    for (size_t i = 0; i < 57; i++) {
        many.candidate[i].decided.decision = DECISION_MEASURE; // so that audits are allowed
    }
    size_t audits = 0;
    for (many.run_state.started.seed = 1; many.run_state.started.seed <= 4000;
         many.run_state.started.seed++) {
        decision = decide_among("budget", &many, 58, 97, 99);
        assert_true(decision.propensity == 0.25);
        audits += decision.decision == DECISION_AUDIT;
    }
    assert_true(audits > 850 && audits < 1150);
    // The candidate with the highest expected improvement is trusted nevertheless when its forecast
    // is confident that it is no improvement.
    many.forecast[96].p_improves = 0.01;
    many.forecast[96].confidence = 0.99;
    assert_int_equal(decide_among("budget", &many, 97, 97, 99).decision, DECISION_TRUST);
    // Without enough forecasts to compare with, with an untrained model, and without a forecast.
    assert_int_equal(decide_among("budget", &many, 1, 1, 3).decision, DECISION_MEASURE);
    many.forecast[57].trained_rows = 0;
    assert_int_equal(decide_among("budget", &many, 58, 97, 99).decision, DECISION_MEASURE);
    decision = decide_among("budget", &many, 60, 97, 99);
    assert_int_equal(decision.decision, DECISION_MEASURE);
    assert_non_null(strstr(decision.reason, "no forecast"));
}

// Two candidates have the same expected improvement. One of them may also be very slow, and slow
// candidates have taken long to measure.
static void what_takes_long_stands_behind_what_promises_as_much(void **state)
{
    (void)state;
    struct many many;
    make_many(&many);
    memset(many.bins[97], 0, sizeof(many.bins[97]));
    memset(many.bins[98], 0, sizeof(many.bins[98]));
    many.bins[97][bin_of(1.1)] = many.bins[98][bin_of(1.1)] = 0.5;
    many.bins[97][bin_of(-0.1)] = many.bins[98][bin_of(-2.5)] = 0.5;
    size_t compared;
    double first = rank(&many, 98, 99, &compared), second = rank(&many, 99, 99, &compared);
    assert_true(fabs(first - second) < 1e-9);
    struct result result[20];
    struct estimate speedup[20];
    struct accounts seconds[20];
    for (size_t i = 0; i < 20; i++) {
        message_init(&result_message, &result[i]);
        message_init(&estimate_message, &speedup[i]);
        speedup[i].log2 = i % 2 == 0 ? 0 : -3;
        result[i].verdict = VERDICT_SLOWER;
        result[i].speedup = &speedup[i];
        seconds[i] = (struct accounts){.held = i % 2 == 0 ? 0.1 : 0.8};
        result[i].seconds = &seconds[i];
        many.candidate[i].result = &result[i];
    }
    many.run_state.candidate_count = COUNT;
    struct policy_view view = {
        .run_state = &many.run_state, .candidate = 98, .last = 99, .visible = 20};
    first = policy_share_ahead(&view, &compared);
    view.candidate = 99;
    second = policy_share_ahead(&view, &compared);
    assert_true(first < second);
    // An answer without the number, or an endless one, does not spoil what the others teach.
    speedup[0].log2 = NAN;
    speedup[1].log2 = -INFINITY;
    assert_true(policy_share_ahead(&view, &compared) == second);
    view.candidate = 98;
    assert_true(policy_share_ahead(&view, &compared) == first);
}

static void the_published_rule_measures_a_quarter_of_each_batch(void **state)
{
    (void)state;
    struct many many;
    make_many(&many);
    size_t measured = 0;
    for (uint64_t id = 41; id <= 56; id++) {
        struct policy_decision decision = decide_among("published", &many, id, 41, 56);
        measured += decision.decision == DECISION_MEASURE;
        if (id > 52 || id == 50) { // the best ones, and one without a forecast, which is not ranked
            assert_int_equal(decision.decision, id == 50 ? DECISION_TRUST : DECISION_MEASURE);
        }
    }
    assert_int_equal(measured, 4); // of 15 that are ranked
    assert_true(policy_find("published")->replay_only && !policy_find("budget")->replay_only);
}

// The plain rule goes by the speed alone; what is fast and surely wrong ranks last with P(correct).
static void the_published_rule_times_p_correct_leaves_out_what_is_wrong(void **state)
{
    (void)state;
    struct many many;
    make_many(&many);
    assert_true(policy_find("published-correct")->replay_only);
    for (uint64_t id = 41; id <= 56; id++) { // all equally correct: the same rule
        many.forecast[id - 1].p_correct = 0.5;
        assert_int_equal(decide_among("published-correct", &many, id, 41, 56).decision,
                         decide_among("published", &many, id, 41, 56).decision);
    }
    many.forecast[55 - 1].p_correct = many.forecast[56 - 1].p_correct = 0.01;
    for (uint64_t id = 51; id <= 56; id++) {
        bool wrong = id >= 55;
        struct policy_decision decision = decide_among("published-correct", &many, id, 41, 56);
        assert_int_equal(decision.decision, wrong ? DECISION_TRUST : DECISION_MEASURE);
        assert_true(decision.propensity == (wrong ? 0 : 1));
    }
    assert_int_equal(decide_among("published", &many, 55, 41, 56).decision, DECISION_MEASURE);
}

static void batches_are_the_policys_own_or_what_was_asked_for(void **state)
{
    static const struct {
        const char *policy;
        uint64_t batch, wide;                 // as asked for
        uint64_t settled_batch, settled_wide; // as they are then
    } cases[] = {
        {"rank", 4, 0, 4, 4},         {"rank", 32, 0, 32, 32},       {"rank", 8, 24, 8, 24},
        {"threshold", 8, 0, 8, 16},   {"threshold", 8, 24, 8, 24},   {"threshold", 8, 1, 8, 1},
        {"threshold", 31, 0, 31, 62}, {"threshold", 32, 0, 32, 64},  {"threshold", 33, 0, 33, 64},
        {"threshold", 64, 0, 64, 64}, {"all", 1, 0, 1, 2},           {"risk", 16, 0, 16, 32},
        {"budget", 8, 0, 8, 16},      {"budget", 4, 0, 4, 16},       {"budget", 4, 5, 4, 5},
        {"published", 8, 0, 16, 16},  {"published", 64, 64, 16, 16},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t batch = cases[i].batch, wide = cases[i].wide;
        policy_batches(policy_find(cases[i].policy), &batch, &wide);
        assert_int_equal(batch, cases[i].settled_batch);
        assert_int_equal(wide, cases[i].settled_wide);
    }
}

static void usable_forecasts_have_probabilities_at_both_places(void **state)
{
    static const struct {
        double p_improves, confidence;
        bool usable;
    } cases[] = {
        {0, 0, true},           {1, 1, true},         {0.5, 0.5, true},      {-1e-9, 0.5, false},
        {1 + 1e-9, 0.5, false}, {0.5, -1e-9, false},  {0.5, 1.1, false},     {NAN, 0.5, false},
        {0.5, NAN, false},      {INFINITY, 1, false}, {0, -INFINITY, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct forecast forecast = {.p_improves = cases[i].p_improves,
                                    .confidence = cases[i].confidence};
        assert_int_equal(policy_usable(&forecast), cases[i].usable);
    }
    assert_false(policy_usable(NULL));
}

// Nothing is trusted before a certificate, nor by one of another engine, nor at its threshold.
static void risk_trusts_strictly_below_the_threshold_of_the_same_engine(void **state)
{
    static const struct {
        double p_improves, threshold;
        const char *engine;
        uint64_t certifications, rows;
        enum decision decision;
        const char *words;
    } cases[] = {
        {0.09, 0.1, "trees", 1, 20, DECISION_TRUST, "below the certified 0.100"},
        {0.1, 0.1, "trees", 1, 20, DECISION_MEASURE, "is not below the certified 0.100"},
        {0.0, 0.1, "trees", 0, 20, DECISION_MEASURE, "no threshold is certified (P = 0.000)"},
        {0.0, 0.1, "other", 1, 20, DECISION_MEASURE, "no threshold is certified"},
        {0.0, 0.1, NULL, 1, 20, DECISION_MEASURE, "no threshold is certified"},
        {0.0, NAN, "trees", 1, 20, DECISION_MEASURE, "no threshold is certified"},
        {0.0, -INFINITY, "trees", 1, 20, DECISION_MEASURE, "is not below"},
        {0.0, 0.1, "trees", 1, 0, DECISION_MEASURE, "no outcome is known yet"},
        {NAN, 0.1, "trees", 1, 20, DECISION_MEASURE, "its numbers are no probabilities"},
        {0.9, 0.5, "trees", 1, 20, DECISION_MEASURE, "is not below the certified 0.500"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct forecast forecast = {.p_improves = cases[i].p_improves,
                                    .confidence = 0.8,
                                    .trained_rows = cases[i].rows,
                                    .engine = (char *)(uintptr_t)cases[i].engine};
        struct run_state_candidate candidate = {.forecast = &forecast};
        struct run_state run_state = {
            .candidate = &candidate,
            .candidate_count = 1,
            .certifications = cases[i].certifications,
            .certified = {.threshold = cases[i].threshold, .engine = (char *)(uintptr_t) "trees"}};
        struct policy_view view = {.run_state = &run_state, .candidate = 1, .first = 1, .last = 1};
        struct policy_decision decision;
        policy_find("risk")->decide(&view, &decision);
        assert_int_equal(decision.decision, cases[i].decision);
        if (!strstr(decision.reason, cases[i].words)) {
            fail_msg("\"%s\" does not say \"%s\"", decision.reason, cases[i].words);
        }
    }
}

static void a_reason_that_is_too_long_is_cut(void **state)
{
    (void)state;
    char reason[2000];
    memset(reason, 'x', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    struct run_state_candidate candidate = {.forecast_reason = reason};
    struct run_state run_state = {.candidate = &candidate, .candidate_count = 1};
    struct policy_view view = {.run_state = &run_state, .candidate = 1, .first = 1, .last = 1};
    struct policy_decision decision;
    policy_find("threshold")->decide(&view, &decision);
    assert_int_equal(strlen(decision.reason), strlen("there is no forecast: ") + 400);
    candidate.forecast_reason = NULL;
    policy_find("threshold")->decide(&view, &decision);
    assert_string_equal(decision.reason, "there is no forecast: nobody made one");
}

// An old worker sends no bins: then its own number counts, whatever the incumbent is now.
static void without_bins_the_workers_expected_improvement_counts(void **state)
{
    (void)state;
    double bins[BIN_COUNT] = {0};
    bins[bin_of(1.1)] = 1;
    struct forecast forecast = {.p_correct = 0.5, .expected_improvement = 0.125};
    assert_true(policy_expected_improvement(&forecast, 0) == 0.125);
    assert_true(policy_expected_improvement(&forecast, 9) == 0.125);
    forecast.bins = bins;
    forecast.bins_count = BIN_COUNT - 1; // truncated
    assert_true(policy_expected_improvement(&forecast, 9) == 0.125);
    forecast.bins_count = BIN_COUNT;
    double all = policy_expected_improvement(&forecast, 0);
    assert_true(all > 0.4 && all < 0.7); // half of about 1.1
    assert_true(policy_expected_improvement(&forecast, 9) == 0);
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
        cmocka_unit_test(what_a_screening_has_chosen_is_measured),
        cmocka_unit_test(what_was_not_screened_goes_by_its_forecast),
        cmocka_unit_test(without_a_forecast_is_measured_and_says_why),
        cmocka_unit_test(policy_all_trusts_nobody),
        cmocka_unit_test(audits_have_their_share_and_are_reproducible),
        cmocka_unit_test(audits_during_the_search_leave_most_for_its_end),
        cmocka_unit_test(a_budget_measures_those_that_stand_well),
        cmocka_unit_test(what_takes_long_stands_behind_what_promises_as_much),
        cmocka_unit_test(standing_is_among_the_latest_forecasts_beyond_the_incumbent_of_now),
        cmocka_unit_test(the_published_rule_measures_a_quarter_of_each_batch),
        cmocka_unit_test(the_published_rule_times_p_correct_leaves_out_what_is_wrong),
        cmocka_unit_test(batches_are_the_policys_own_or_what_was_asked_for),
        cmocka_unit_test(usable_forecasts_have_probabilities_at_both_places),
        cmocka_unit_test(risk_trusts_strictly_below_the_threshold_of_the_same_engine),
        cmocka_unit_test(a_reason_that_is_too_long_is_cut),
        cmocka_unit_test(without_bins_the_workers_expected_improvement_counts),
        cmocka_unit_test(unknown_policy_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
