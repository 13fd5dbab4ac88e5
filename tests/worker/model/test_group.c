// A group of outcomes, from the first one to a whole search: which outcomes are usable, when the
// model changes, and that trusting forecasts saves most measurements and loses next to nothing.
#include "worker/model/group.h"
#include "worker/outcomes/outcome.h"

#include "common/mem.h"
#include "proto/bins.h"
#include "tests/worker/model/group_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define THRESHOLD 0.9
#define AUDIT 0.1

static double told_wrong(struct group *group, bool recalibrated)
{
    struct observe context;
    message_init(&observe_message, &context);
    if (recalibrated) {
        group_recalibrate(group);
    }
    add_points(group, 0, 100);
    assert_int_equal(group_fit(group, false, NULL), 0);
    // The decisions that the model is most certain of are wrong every time.
    for (size_t i = 0; i < 60; i++) {
        struct space_point point = space_point_at(i, 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct outcome outcome = space_outcome(&point, &candidate);
        struct forecast forecast = forecast_of(group, point, -10);
        assert_true((!!forecast.raw) == recalibrated);
        if (recalibrated) {
            assert_string_equal(forecast.raw->model, "static");
            assert_int_equal(forecast.raw->bins_count, BIN_COUNT);
        }
        outcome.raw = forecast.raw;
        outcome.p_improves = forecast.p_improves;
        outcome.incumbent_log2 = -10;
        outcome.propensity = 1;
        outcome.verdict = VERDICT_WRONG;
        group_add(group, &context, &outcome);
        forecast_end(&forecast);
    }
    // The model has not been fitted again. Only the decisions have changed.
    struct forecast forecast = forecast_of(group, space_point_at(0, 1), -10);
    double p = forecast.p_correct;
    assert_true((forecast.map_version > 0) == recalibrated);
    assert_true(forecast.p_improves <= forecast.p_correct + 1e-9);
    forecast_end(&forecast);
    return p;
}

static void forecasts_are_recalibrated_by_their_history_when_asked_for(void **state)
{
    struct group *plain = *state, *group = group_create("sgemm", "cpu x");
    double as_it_is = told_wrong(plain, false), corrected = told_wrong(group, true);
    assert_true(as_it_is > 0.5);
    assert_true(corrected < as_it_is - 0.3);
    group_free(group);
}

static void eleven_outcomes_are_too_few(void **state)
{
    struct group *group = *state;
    add_points(group, 0, GROUP_ROWS_MIN - 1);
    assert_int_equal(group_fit(group, false, NULL), 0);
    struct forecast forecast = forecast_of(group, space_point_at(0, 1), 1);
    assert_true(forecast.confidence == 0);
    assert_string_equal(forecast.reason,
                        "only 11 outcomes of sgemm on this device class so far; 12 are needed");
    assert_int_equal(forecast.trained_rows, 0);
    forecast_end(&forecast);
    add_points(group, GROUP_ROWS_MIN - 1, GROUP_ROWS_MIN);
    assert_int_equal(group_fit(group, false, NULL), 0);
    forecast = forecast_of(group, space_point_at(0, 1), 1);
    assert_null(forecast.reason);
    assert_true(forecast.confidence > 0 && forecast.confidence < THRESHOLD);
    assert_int_equal(forecast.trained_rows, 12);
    forecast_end(&forecast);
}

static void wrong_outcomes_alone_teach_no_speed(void **state)
{
    struct group *group = *state;
    struct observe context;
    message_init(&observe_message, &context);
    for (size_t i = 0; i < 30; i++) {
        struct space_point point = space_point_at(i, 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct outcome outcome = space_outcome(&point, &candidate);
        outcome.verdict = i % 2 ? VERDICT_CRASH : VERDICT_TIMEOUT;
        group_add(group, &context, &outcome);
    }
    assert_int_equal(group_fit(group, false, NULL), 0);
    struct forecast forecast = forecast_of(group, space_point_at(0, 1), 1);
    assert_true(forecast.confidence == 0);
    assert_non_null(strstr(forecast.reason, "only 0 correct outcomes"));
    assert_true(forecast.p_correct < 0.1);
    forecast_end(&forecast);
}

static void only_outcomes_that_say_something_are_taken(void **state)
{
    (void)state;
    struct space_point point = space_point_at(0, 1);
    struct candidate_facts candidate = space_candidate(&point, 0);
    struct outcome outcome = space_outcome(&point, &candidate);
    assert_true(outcome_is_usable(&outcome));
    const double bad[] = {NAN, INFINITY, 1e9};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        outcome.log2 = bad[i];
        assert_false(outcome_is_usable(&outcome));
    }
    outcome.log2 = 1;
    const uint64_t silent[] = {VERDICT_NONE, VERDICT_COMPILE_ERROR, VERDICT_QUARANTINED, 77,
                               UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        outcome.verdict = silent[i];
        assert_false(outcome_is_usable(&outcome));
    }
    outcome.verdict = VERDICT_CRASH;
    outcome.candidate = NULL;
    assert_false(outcome_is_usable(&outcome));
}

static void bins_are_a_distribution_and_improvement_falls_with_the_incumbent(void **state)
{
    struct group *group = *state;
    for (size_t rows = 0; rows <= 60; rows += 60) {
        add_points(group, 0, rows);
        assert_int_equal(group_fit(group, false, NULL), 0);
        double before = 1;
        for (double incumbent = -3; incumbent < 6; incumbent += 0.25) {
            struct forecast forecast = forecast_of(group, space_point_at(33, 1), incumbent);
            assert_int_equal(forecast.bins_count, BIN_COUNT);
            double sum = 0;
            for (size_t b = 0; b < BIN_COUNT; b++) {
                assert_true(forecast.bins[b] >= 0);
                sum += forecast.bins[b];
            }
            assert_float_equal(sum, 1, 1e-9);
            assert_true(forecast.p_improves <= before && forecast.p_improves >= 0);
            assert_true(forecast.p_improves <= forecast.p_correct);
            assert_true(forecast.expected_improvement >= 0);
            before = forecast.p_improves;
            forecast_end(&forecast);
        }
    }
}

static void absurd_facts_are_survived(void **state)
{
    struct group *group = *state;
    struct observe context;
    message_init(&observe_message, &context);
    for (size_t i = 0; i < 40; i++) {
        struct space_point point = space_point_at(i * 11, 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct outcome outcome = space_outcome(&point, &candidate);
        point.param[i % 5].value = i % 2 ? NAN : -9e29;
        point.feature[0].value = i % 3 ? INFINITY : 9e29;
        point.feature[1].value = i % 4 ? -1e-300 : 0;
        outcome.p_improves = i % 2 ? 5 : NAN;
        outcome.propensity = i % 2 ? -1 : 0;
        outcome.incumbent_log2 = NAN;
        group_add(group, &context, &outcome);
    }
    assert_int_equal(group_fit(group, false, NULL), 0);
    struct space_point point = space_point_at(3, 1);
    point.param[0].value = INFINITY;
    struct forecast forecast = forecast_of(group, point, NAN);
    assert_true(isfinite(forecast.mean_log2) && isfinite(forecast.p_improves) &&
                isfinite(forecast.confidence));
    forecast_end(&forecast);
}

static void equal_outcomes_give_equal_forecasts(void **state)
{
    struct group *one = *state, *two = group_create("sgemm", "cpu x");
    add_points(one, 0, 50);
    assert_int_equal(group_fit(one, false, NULL), 0); // fits in between change nothing
    add_points(one, 50, 70);
    add_points(two, 0, 70);
    assert_int_equal(group_fit(one, false, NULL), 0);
    assert_int_equal(group_fit(two, false, NULL), 0);
    for (size_t i = 0; i < SPACE_POINTS; i += 37) {
        struct forecast a = forecast_of(one, space_point_at(i, 1), 2),
                        b = forecast_of(two, space_point_at(i, 1), 2);
        assert_true(message_equal(&forecast_message, &a, &b));
        forecast_end(&a);
        forecast_end(&b);
    }
    group_free(two);
}

static void in_a_large_group_every_outcome_is_learnt(void **state)
{
    struct group *one = *state, *two = group_create("sgemm", "cpu x");
    add_points(one, 0, 600);
    assert_int_equal(group_fit(one, false, NULL), 0);
    for (size_t i = 600; i < 610; i++) { // includes a turn of each part
        add_points(one, i, i + 1);
        assert_int_equal(group_fit(one, false, NULL), 0);
        assert_int_equal(group_version(one), i + 1);
    }
    add_points(two, 0, 610);
    assert_int_equal(group_fit(two, false, NULL), 0);
    for (size_t i = 0; i < SPACE_POINTS; i += 37) {
        struct forecast a = forecast_of(one, space_point_at(i, 1), 2),
                        b = forecast_of(two, space_point_at(i, 1), 2);
        assert_true(message_equal(&forecast_message, &a, &b));
        forecast_end(&a);
        forecast_end(&b);
    }
    group_free(two);
}

// From row 165 on candidates have a feature whose name is sorted before all others.
static void add_with_late_feature(struct group *group, size_t from, size_t to)
{
    struct observe context;
    message_init(&observe_message, &context);
    size_t order[SPACE_POINTS];
    space_order(order, 5);
    for (size_t i = from; i < to; i++) {
        struct space_point point = space_point_at(order[i % SPACE_POINTS], 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct fact feature[3] = {point.feature[0],
                                  point.feature[1],
                                  {(char *)"aaa", point.param[0].value * point.param[1].value}};
        candidate.features = feature;
        candidate.features_count = i < 165 ? 2 : 3;
        struct outcome outcome = space_outcome(&point, &candidate);
        group_add(group, &context, &outcome);
    }
}

static void a_feature_that_comes_late_changes_no_order(void **state)
{
    struct group *one = *state, *two = group_create("sgemm", "cpu x");
    for (size_t rows = 150; rows < 180; rows++) { // the step between turns is two rows here
        add_with_late_feature(one, rows == 150 ? 0 : rows, rows + 1);
        assert_int_equal(group_fit(one, false, NULL), 0);
    }
    add_with_late_feature(two, 0, 180);
    assert_int_equal(group_fit(two, false, NULL), 0);
    for (size_t i = 0; i < SPACE_POINTS; i += 37) {
        struct forecast a = forecast_of(one, space_point_at(i, 1), 2),
                        b = forecast_of(two, space_point_at(i, 1), 2);
        assert_true(message_equal(&forecast_message, &a, &b));
        forecast_end(&a);
        forecast_end(&b);
    }
    group_free(two);
}

// One search by threshold routing.
struct search {
    struct group *group;
    double incumbent, best; // of those measured, and of all
    size_t considered, measured, wrong_calls;
};

static void route(struct search *search, size_t index, uint64_t seed)
{
    struct space_point point = space_point_at(index, seed);
    struct candidate_facts candidate = space_candidate(&point, index);
    struct outcome outcome = space_outcome(&point, &candidate);
    struct observe context;
    message_init(&observe_message, &context);
    assert_int_equal(group_fit(search->group, false, NULL), 0);
    struct forecast forecast = forecast_of(search->group, point, search->incumbent);
    bool trusted = forecast.p_improves < 0.5 && forecast.confidence >= THRESHOLD;
    bool improves = point.correct && point.log2 > search->incumbent;
    double coin = (double)(stats_philox(seed, 9, index) >> 11) * 0x1p-53;
    outcome.p_improves = forecast.p_improves;
    outcome.incumbent_log2 = search->incumbent;
    outcome.propensity = trusted ? AUDIT : 1;
    search->considered++;
    search->wrong_calls += trusted && improves;
    if (point.correct) {
        search->best = fmax(search->best, point.log2);
    }
    if (!trusted || coin < AUDIT) {
        group_add(search->group, &context, &outcome);
        search->measured++;
        if (improves) {
            search->incumbent = point.log2;
        }
    }
    forecast_end(&forecast);
}

// A single search may lose its best point: of 330 decisions that are trusted at this threshold
// about one is wrong.
static void searches_measure_a_fifth_and_find_the_best_within_a_tenth(void **state)
{
    (void)state;
    double shortfall = 0;
    size_t considered = 0, measured = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        size_t order[SPACE_POINTS];
        struct search search = {.group = group_create("sgemm", "cpu x")};
        space_order(order, seed);
        for (size_t i = 0; i < 400; i++) {
            route(&search, order[i], seed);
        }
        print_message("seed %d: %zu of %zu measured, best %.2f of %.2f, %zu wrong calls\n",
                      (int)seed, search.measured, search.considered, search.incumbent, search.best,
                      search.wrong_calls);
        considered += search.considered;
        measured += search.measured;
        shortfall += (search.best - search.incumbent) / 4;
        assert_true(search.best - search.incumbent < 0.35);
        group_free(search.group);
    }
    assert_true(measured * 5 <= considered);
    assert_true(shortfall < 0.14);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(forecasts_are_recalibrated_by_their_history_when_asked_for),
        TEST(eleven_outcomes_are_too_few),
        TEST(wrong_outcomes_alone_teach_no_speed),
        TEST(only_outcomes_that_say_something_are_taken),
        TEST(bins_are_a_distribution_and_improvement_falls_with_the_incumbent),
        TEST(absurd_facts_are_survived),
        TEST(equal_outcomes_give_equal_forecasts),
        TEST(in_a_large_group_every_outcome_is_learnt),
        TEST(a_feature_that_comes_late_changes_no_order),
        TEST(searches_measure_a_fifth_and_find_the_best_within_a_tenth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
