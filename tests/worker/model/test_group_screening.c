// A group's second model, of points that nobody has compiled: what it knows, and when it is fitted.
#include "worker/model/group.h"

#include "common/mem.h"
#include "tests/worker/model/group_fixture.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

// Parameters are known of a point that nobody has compiled: a screening's forecasts do not change
// with what the compiler says, and tell fast points from slow ones.
static void a_screening_forecasts_by_parameters_alone(void **state)
{
    struct group *group = *state;
    add_points(group, 0, 60);
    assert_false(group_ready(group, true, false));
    assert_int_equal(group_fit(group, true, NULL), 0);
    assert_true(group_ready(group, true, false));
    double sum = 0;
    for (size_t i = 0; i < SPACE_POINTS; i += 7) {
        struct space_point point = space_point_at(i, 1);
        struct candidate_facts candidate = space_candidate(&point, i), bare = candidate;
        bare.features_count = 0;
        struct forecast_request request;
        message_init(&forecast_request_message, &request);
        struct candidate_facts both[] = {candidate, bare};
        request.candidates = both;
        request.candidates_count = 2;
        request.screening = true;
        struct forecast_reply reply;
        assert_int_equal(group_forecast(group, &request, &reply, NULL), 0);
        assert_true(reply.forecasts[0].mean_log2 == reply.forecasts[1].mean_log2);
        assert_true(reply.forecasts[0].p_correct == reply.forecasts[1].p_correct);
        assert_int_equal(reply.forecasts[0].trained_rows, 60);
        sum += fabs(reply.forecasts[0].mean_log2 - point.log2);
        message_clear(&forecast_reply_message, &reply);
    }
    assert_true(sum / ((double)SPACE_POINTS / 7) < 0.5);
}

// A survey asks how probable it is to lie beyond the incumbent by some margins. Others are not
// told.
static void a_screening_tells_the_chances_beyond_the_incumbent(void **state)
{
    struct group *group = *state;
    add_points(group, 0, 60);
    assert_int_equal(group_fit(group, true, NULL), 0);
    struct space_point point = space_point_at(3, 1);
    struct candidate_facts candidate = space_candidate(&point, 1);
    double beyond[] = {0, 0.1, 0.5, 20};
    struct forecast_request request;
    message_init(&forecast_request_message, &request);
    request.candidates = &candidate;
    request.candidates_count = 1;
    request.screening = true;
    request.incumbent_log2 = point.log2;
    request.margin_log2 = 0.1;
    request.beyond_log2 = beyond;
    request.beyond_log2_count = 4;
    struct forecast_reply reply;
    assert_int_equal(group_forecast(group, &request, &reply, NULL), 0);
    const struct forecast *forecast = &reply.forecasts[0];
    assert_int_equal(forecast->p_beyond_count, 4);
    for (size_t i = 1; i < 4; i++) {
        assert_true(forecast->p_beyond[i] <= forecast->p_beyond[i - 1]);
    }
    assert_true(forecast->p_beyond[0] <= forecast->p_correct && forecast->p_beyond[0] > 0.01);
    assert_true(fabs(forecast->p_beyond[1] - forecast->p_improves) < 1e-12); // the same margin
    assert_true(forecast->p_beyond[3] < 1e-3);
    message_clear(&forecast_reply_message, &reply);
    request.beyond_log2_count = 0;
    assert_int_equal(group_forecast(group, &request, &reply, NULL), 0);
    assert_int_equal(reply.forecasts[0].p_beyond_count, 0);
    message_clear(&forecast_reply_message, &reply);
}

// Candidates without parameters: what their sources define tells fast from slow.
static void a_screening_forecasts_by_facts_about_sources(void **state)
{
    struct group *group = *state;
    struct observe context;
    message_init(&observe_message, &context);
    size_t order[SPACE_POINTS];
    space_order(order, 5);
    double error = 0, spread = 0, mean = 0;
    for (size_t i = 0; i < 200; i++) {
        struct space_point point = space_point_at(order[i], 1);
        struct candidate_facts candidate = {
            .id = i, .source_facts = point.param, .source_facts_count = 5};
        struct outcome outcome = space_outcome(&point, &candidate);
        if (i < 100) {
            mean += point.correct ? point.log2 / 100 : 0;
            group_add(group, &context, &outcome);
            continue;
        }
        assert_int_equal(group_fit(group, true, NULL), 0);
        struct forecast_request request;
        message_init(&forecast_request_message, &request);
        request.candidates = &candidate;
        request.candidates_count = 1;
        request.screening = true;
        struct forecast_reply reply;
        assert_int_equal(group_forecast(group, &request, &reply, NULL), 0);
        if (point.correct) {
            error += fabs(reply.forecasts[0].mean_log2 - point.log2);
            spread += fabs(mean - point.log2);
        }
        message_clear(&forecast_reply_message, &reply);
    }
    assert_true(error < 0.5 * spread);
}

// Teaches 90 points, of which those with PACK=2 do not compile.
static void add_failing_points(struct group *group)
{
    struct observe context;
    message_init(&observe_message, &context);
    size_t order[SPACE_POINTS];
    space_order(order, 5);
    for (size_t i = 0; i < 90; i++) {
        struct space_point point = space_point_at(order[i], 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct outcome outcome = space_outcome(&point, &candidate);
        if (point.param[4].value == 2) {
            candidate.features_count = 0;
            outcome.verdict = VERDICT_COMPILE_ERROR;
            outcome.log2 = NAN;
        }
        group_add(group, &context, &outcome);
    }
}

static double mean_p_compiles(struct group *group, double pack)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < SPACE_POINTS; i += 3) {
        struct space_point point = space_point_at(i, 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct forecast_request request;
        struct forecast_reply reply;
        if (point.param[4].value != pack) {
            continue;
        }
        message_init(&forecast_request_message, &request);
        request.candidates = &candidate;
        request.candidates_count = 1;
        request.screening = true;
        assert_int_equal(group_forecast(group, &request, &reply, NULL), 0);
        assert_true(reply.forecasts[0].p_correct <= reply.forecasts[0].p_compiles);
        assert_true(reply.forecasts[0].p_improves <= reply.forecasts[0].p_correct + 1e-9);
        sum += reply.forecasts[0].p_compiles;
        count++;
        message_clear(&forecast_reply_message, &reply);
    }
    return sum / (double)count;
}

static void points_that_do_not_compile_are_told_from_others_before_compiling(void **state)
{
    struct group *group = *state;
    add_failing_points(group);
    assert_int_equal(group_fit(group, true, NULL), 0);
    assert_true(mean_p_compiles(group, 2) < 0.2);
    assert_true(mean_p_compiles(group, 1) > 0.8);
    assert_true(mean_p_compiles(group, 0) > 0.8);
}

// What did not compile says nothing about the correctness of what did.
static void compile_failures_do_not_count_against_compiled_candidates(void **state)
{
    struct group *group = *state;
    add_failing_points(group);
    assert_int_equal(group_fit(group, false, NULL), 0);
    size_t looked_at = 0;
    for (size_t i = 0; i < SPACE_POINTS; i += 7) {
        struct space_point point = space_point_at(i, 1);
        if (point.param[4].value == 2) {
            struct forecast forecast = forecast_of(group, point, 0);
            assert_true(forecast.p_correct > 0.6);
            assert_true(forecast.p_compiles == 1);
            forecast_end(&forecast);
            looked_at++;
        }
    }
    assert_true(looked_at > 10);
}

// Nobody pays for a model that is not asked: it is fitted again when it is.
static void only_models_that_are_asked_are_fitted(void **state)
{
    struct group *group = *state;
    group_use(group, false);
    add_points(group, 0, 14);
    assert_int_equal(group_refit(group, NULL), 0);
    assert_true(group_ready(group, false, false));
    assert_false(group_ready(group, true, false));
    group_use(group, true);
    add_points(group, 14, 30); // 30 outcomes after the first model was asked, 16 after the second
    assert_int_equal(group_refit(group, NULL), 0);
    assert_true(group_ready(group, true, false));
    assert_false(group_ready(group, false, false));
    assert_int_equal(group_version(group), 30);
    group_use(group, false);
    assert_false(group_ready(group, false, false)); // it does not know the newest outcomes
    assert_int_equal(group_fit(group, false, NULL), 0);
    assert_true(group_ready(group, false, false));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_screening_forecasts_by_parameters_alone),
        TEST(a_screening_tells_the_chances_beyond_the_incumbent),
        TEST(a_screening_forecasts_by_facts_about_sources),
        TEST(points_that_do_not_compile_are_told_from_others_before_compiling),
        TEST(compile_failures_do_not_count_against_compiled_candidates),
        TEST(only_models_that_are_asked_are_fitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
