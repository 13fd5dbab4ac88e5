// The static engine through its table of operations, on a real loop and a real state folder.
#include "worker/model/engine_static.h"

#include "common/file.h"
#include "common/mem.h"
#include "tests/worker/space.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    char *dir;
    uv_loop_t loop;
    void *engine;
    unsigned threads;
    struct answer {
        int count;
        enum err_code code;
        char text[ERR_TEXT_MAX];
        struct forecast_reply forecast; // deep copies of the replies
        struct observed observed;
        struct worker_status status;
    } answer;
};

static void open_engine(struct fixture *f)
{
    struct engine_config config = {.loop = &f->loop, .state_dir = f->dir, .threads = f->threads};
    struct err err = ERR_INIT;
    if (engine_static.open(&f->engine, &config, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static void close_engine(struct fixture *f)
{
    engine_static.close(f->engine);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    f->engine = NULL;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-engine", NULL), 0);
    uv_loop_init(&f->loop);
    open_engine(f);
    *state = f;
    return 0;
}

static void forget(struct fixture *f)
{
    message_clear(&forecast_reply_message, &f->answer.forecast);
    message_clear(&worker_status_message, &f->answer.status);
    memset(&f->answer, 0, sizeof(f->answer));
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    close_engine(f);
    forget(f);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f);
    return 0;
}

static bool failed(struct answer *answer, const struct err *error)
{
    answer->count++;
    answer->code = error ? error->code : ERR_NONE;
    snprintf(answer->text, sizeof(answer->text), "%s", error ? error->text : "");
    return error;
}

static void on_forecast(void *owner, const struct err *error, const void *reply)
{
    struct fixture *f = owner;
    if (!failed(&f->answer, error)) {
        message_clear(&forecast_reply_message, &f->answer.forecast);
        message_copy(&forecast_reply_message, &f->answer.forecast, reply);
    }
}

static void on_observed(void *owner, const struct err *error, const void *reply)
{
    struct fixture *f = owner;
    if (!failed(&f->answer, error)) {
        f->answer.observed = *(const struct observed *)reply;
    }
}

static void on_status(void *owner, const struct err *error, const void *reply)
{
    struct fixture *f = owner;
    if (!failed(&f->answer, error)) {
        message_copy(&worker_status_message, &f->answer.status, reply);
    }
}

// The parts of an OBSERVE besides the point.
struct told {
    double p_improves, incumbent, propensity;
    bool turned; // fast and slow candidates are exchanged
};

static void post_observe(struct fixture *f, size_t from, size_t to, const struct told *told)
{
    struct observe observe;
    message_init(&observe_message, &observe);
    observe.problem = xstrdup("sgemm");
    observe.device_class = xstrdup("cpu x");
    observe.outcomes = xcalloc(to - from, sizeof(*observe.outcomes));
    observe.outcomes_count = to - from;
    for (size_t i = from; i < to; i++) {
        struct space_point point = space_point_at(i * 7 % SPACE_POINTS, 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct outcome outcome = space_outcome(&point, &candidate);
        char key[32];
        snprintf(key, sizeof(key), "test/%zu", i);
        outcome.key = key;
        outcome.p_improves = told ? told->p_improves : NAN;
        outcome.incumbent_log2 = told ? told->incumbent : NAN;
        outcome.propensity = told ? told->propensity : 1;
        if (told && told->turned) {
            outcome.verdict = VERDICT_FASTER;
            outcome.log2 = told->incumbent + 1;
        }
        message_copy(&outcome_message, &observe.outcomes[i - from], &outcome);
    }
    engine_static.observe(f->engine, &observe, on_observed, f);
    assert_null(observe.problem); // the request was taken
}

static void observe(struct fixture *f, size_t from, size_t to, const struct told *told)
{
    forget(f);
    post_observe(f, from, to, told);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->answer.count, 1);
    assert_int_equal(f->answer.code, 0);
}

// Asks for the forecasts of `count` candidates, from index on.
static void post_forecasts(struct fixture *f, size_t index, size_t count, double incumbent)
{
    struct forecast_request request;
    message_init(&forecast_request_message, &request);
    request.problem = xstrdup("sgemm");
    request.device_class = xstrdup("cpu x");
    request.incumbent_log2 = incumbent;
    request.candidates = xcalloc(count, sizeof(*request.candidates));
    request.candidates_count = count;
    for (size_t i = 0; i < count; i++) {
        struct space_point point = space_point_at((index + i) % SPACE_POINTS, 1);
        struct candidate_facts candidate = space_candidate(&point, index + i);
        message_copy(&candidate_facts_message, &request.candidates[i], &candidate);
    }
    engine_static.forecast(f->engine, &request, on_forecast, f);
    assert_null(request.candidates);
}

static void post_forecast(struct fixture *f, size_t index, double incumbent)
{
    post_forecasts(f, index, 1, incumbent);
}

static const struct forecast *forecast(struct fixture *f, size_t index, double incumbent)
{
    forget(f);
    post_forecast(f, index, incumbent);
    assert_int_equal(f->answer.count, 0); // the callback never runs inside the call
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->answer.code, 0);
    assert_int_equal(f->answer.forecast.forecasts_count, 1);
    return &f->answer.forecast.forecasts[0];
}

static void before_learning_confidence_is_zero_with_a_reason(void **state)
{
    const struct forecast *first = forecast(*state, 3, 1);
    assert_true(first->confidence == 0);
    assert_string_equal(first->reason,
                        "only 0 outcomes of sgemm on this device class so far; 12 are needed");
    assert_string_equal(first->engine, "static");
    assert_int_equal(first->id, 3);
    assert_float_equal(first->p_correct, 0.8, 1e-9);
}

static void it_learns_what_is_fast(void **state)
{
    struct fixture *f = *state;
    struct space_point slow = space_point_at(0, 1), fast = space_point_at(13, 1);
    assert_true(fast.log2 > slow.log2 + 2);
    observe(f, 20, 100, NULL); // neither of the two candidates is among them
    assert_int_equal(f->answer.observed.added, 80);
    assert_int_equal(f->answer.observed.rows, 80);
    assert_int_equal(f->answer.observed.model_version, 0); // nobody has asked for a model yet
    assert_true(forecast(f, 13, 1)->p_improves > 0.9);
    assert_int_equal(forecast(f, 13, 1)->model_version, 80);
    observe(f, 100, 110, NULL);
    assert_int_equal(f->answer.observed.model_version, 90); // now it follows the outcomes
    assert_float_equal(forecast(f, 13, 1)->mean_log2, fast.log2, 0.5);
    assert_true(forecast(f, 0, 1)->p_improves < 0.1);
}

static void confidence_rises_with_right_calls_and_falls_after_misses(void **state)
{
    struct fixture *f = *state;
    const struct told right = {0.02, 9, 1, false}, missed = {0.02, 2, 0.1, true};
    observe(f, 0, 13, NULL);
    double none = forecast(f, 0, 4)->confidence;
    observe(f, 13, 40, &right);
    double many = forecast(f, 0, 4)->confidence;
    observe(f, 40, 42, &missed);
    double after = forecast(f, 0, 4)->confidence;
    assert_true(none > 0 && none < 0.9);
    assert_true(many > 0.9);
    assert_true(after < 0.9 && after < many - 0.05);
}

static void an_outcome_told_twice_counts_once(void **state)
{
    struct fixture *f = *state;
    observe(f, 0, 20, NULL);
    observe(f, 10, 30, NULL);
    assert_int_equal(f->answer.observed.added, 10);
    assert_int_equal(f->answer.observed.rows, 30);
}

static void reopening_gives_the_same_forecasts(void **state)
{
    struct fixture *f = *state;
    observe(f, 0, 40, NULL);
    observe(f, 40, 55, NULL);
    forecast(f, 77, 2);
    struct forecast_reply before;
    message_copy(&forecast_reply_message, &before, &f->answer.forecast);
    close_engine(f);
    open_engine(f);
    forecast(f, 77, 2);
    before.forecasts[0].seconds = f->answer.forecast.forecasts[0].seconds = 0;
    assert_true(message_equal(&forecast_reply_message, &before, &f->answer.forecast));
    message_clear(&forecast_reply_message, &before);
}

static void
observes_that_arrive_together_share_a_fit_and_a_forecast_behind_them_sees_all(void **state)
{
    struct fixture *f = *state;
    forget(f);
    for (size_t i = 0; i < 20; i++) {
        post_observe(f, i, i + 1, NULL);
    }
    post_forecast(f, 77, 2);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->answer.count, 21);
    assert_int_equal(f->answer.forecast.forecasts[0].model_version, 20);
}

static void a_forecast_while_outcomes_are_learnt_comes_from_the_model_that_is_there(void **state)
{
    struct fixture *f = *state;
    observe(f, 0, 40, NULL);
    forget(f);
    for (size_t i = 40; i < 60; i++) {
        post_observe(f, i, i + 1, NULL);
        post_forecast(f, 77, 2);
        while (f->answer.forecast.forecasts_count == 0) {
            uv_run(&f->loop, UV_RUN_ONCE);
        }
        assert_true(f->answer.forecast.forecasts[0].model_version >= 40);
        assert_true(f->answer.forecast.forecasts[0].trained_rows <= i + 1);
        message_clear(&forecast_reply_message, &f->answer.forecast);
    }
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->answer.count, 40);
    assert_int_equal(forecast(f, 77, 2)->model_version, 60);
}

#define MANY 250

static void set_threads(struct fixture *f, unsigned threads)
{
    close_engine(f);
    f->threads = threads;
    open_engine(f);
}

// The forecasts of MANY candidates, without the seconds that they took. The caller's.
static struct forecast_reply many_forecasts(struct fixture *f)
{
    forget(f);
    post_forecasts(f, 0, MANY, 2);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->answer.count, 1);
    assert_int_equal(f->answer.code, 0);
    assert_int_equal(f->answer.forecast.forecasts_count, MANY);
    struct forecast_reply ret = f->answer.forecast;
    message_init(&forecast_reply_message, &f->answer.forecast);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(ret.forecasts[i].id, i);
        assert_true(ret.forecasts[i].seconds > 0);
        ret.forecasts[i].seconds = 0;
    }
    return ret;
}

static void forecasts_do_not_depend_on_the_number_of_threads(void **state)
{
    struct fixture *f = *state;
    const struct told right = {0.02, 9, 1, false};
    observe(f, 0, 13, NULL);
    observe(f, 13, 80, &right); // so that confidences follow from decisions
    (void)forecast(f, 7, 2);
    struct forecast_reply one = many_forecasts(f);
    for (unsigned threads = 2; threads <= 5; threads++) {
        set_threads(f, threads);
        (void)forecast(f, 7, 2); // fits the model
        struct forecast_reply several = many_forecasts(f);
        assert_true(message_equal(&forecast_reply_message, &one, &several));
        message_clear(&forecast_reply_message, &several);
    }
    message_clear(&forecast_reply_message, &one);
}

static void all_parts_of_a_request_come_from_one_model_while_the_next_one_is_learnt(void **state)
{
    struct fixture *f = *state;
    set_threads(f, 4);
    observe(f, 0, 40, NULL);
    forget(f);
    for (size_t i = 40; i < 60; i++) {
        post_observe(f, i, i + 1, NULL);
        post_forecasts(f, 0, MANY, 2);
        while (f->answer.forecast.forecasts_count == 0) {
            uv_run(&f->loop, UV_RUN_ONCE);
        }
        uint64_t version = f->answer.forecast.forecasts[0].model_version;
        assert_true(version >= 40 && version <= i + 1);
        for (size_t k = 0; k < MANY; k++) {
            assert_int_equal(f->answer.forecast.forecasts[k].model_version, version);
        }
        message_clear(&forecast_reply_message, &f->answer.forecast);
    }
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(forecast(f, 77, 2)->model_version, 60);
}

static void closing_answers_forecasts_in_parts_once(void **state)
{
    struct fixture *f = *state;
    set_threads(f, 3);
    observe(f, 0, 40, NULL);
    forget(f);
    for (size_t i = 0; i < 5; i++) {
        post_forecasts(f, 0, MANY, 2);
    }
    engine_static.close(f->engine);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    open_engine(f);
    assert_int_equal(f->answer.count, 5);
    // The one whose parts were under way is answered last, as if the engine had not been closed.
    assert_int_equal(f->answer.code, 0);
    assert_int_equal(f->answer.forecast.forecasts_count, MANY);
}

static void bad_outcomes_are_refused_and_nothing_is_kept(void **state)
{
    struct fixture *f = *state;
    for (int kind = 0; kind < 3; kind++) {
        struct space_point point = space_point_at(1, 1);
        struct candidate_facts candidate = space_candidate(&point, 1);
        struct outcome outcome = space_outcome(&point, &candidate);
        struct observe bad;
        message_init(&observe_message, &bad);
        bad.problem = xstrdup("sgemm");
        bad.device_class = xstrdup("cpu x");
        bad.outcomes = xcalloc(2, sizeof(*bad.outcomes));
        bad.outcomes_count = 2;
        message_copy(&outcome_message, &bad.outcomes[0], &outcome);
        outcome.verdict = kind == 0 ? 1234 : VERDICT_SLOWER;
        outcome.log2 = kind == 1 ? NAN : 1;
        outcome.candidate = kind == 2 ? NULL : &candidate;
        message_copy(&outcome_message, &bad.outcomes[1], &outcome);
        forget(f);
        engine_static.observe(f->engine, &bad, on_observed, f);
        uv_run(&f->loop, UV_RUN_DEFAULT);
        assert_int_equal(f->answer.code, ERR_INVALID);
        assert_non_null(strstr(f->answer.text, "outcome 1"));
    }
    observe(f, 0, 1, NULL);
    assert_int_equal(f->answer.observed.rows, 1);
}

static void groups_do_not_mix(void **state)
{
    struct fixture *f = *state;
    observe(f, 0, 40, NULL);
    struct forecast_request request;
    message_init(&forecast_request_message, &request);
    request.problem = xstrdup("sgemm");
    request.device_class = xstrdup("another cpu");
    request.candidates = xcalloc(1, sizeof(*request.candidates));
    request.candidates_count = 1;
    forget(f);
    engine_static.forecast(f->engine, &request, on_forecast, f);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->answer.forecast.forecasts[0].confidence == 0);
    forget(f);
    engine_static.status(f->engine, on_status, f);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->answer.status.models_count, 1); // a forecast makes no group
    assert_int_equal(f->answer.status.outcomes, 40);
    assert_string_equal(f->answer.status.models[0].problem, "sgemm");
}

static void closing_answers_what_waits(void **state)
{
    struct fixture *f = *state;
    forget(f);
    for (size_t i = 0; i < 5; i++) {
        post_observe(f, i, i + 1, NULL);
    }
    engine_static.close(f->engine);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->answer.count, 5);
    open_engine(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(before_learning_confidence_is_zero_with_a_reason),
        TEST(it_learns_what_is_fast),
        TEST(confidence_rises_with_right_calls_and_falls_after_misses),
        TEST(an_outcome_told_twice_counts_once),
        TEST(reopening_gives_the_same_forecasts),
        TEST(observes_that_arrive_together_share_a_fit_and_a_forecast_behind_them_sees_all),
        TEST(a_forecast_while_outcomes_are_learnt_comes_from_the_model_that_is_there),
        TEST(forecasts_do_not_depend_on_the_number_of_threads),
        TEST(all_parts_of_a_request_come_from_one_model_while_the_next_one_is_learnt),
        TEST(closing_answers_forecasts_in_parts_once),
        TEST(bad_outcomes_are_refused_and_nothing_is_kept),
        TEST(groups_do_not_mix),
        TEST(closing_answers_what_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
