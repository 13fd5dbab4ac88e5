// The engine both, with four language models: one that knows what the features do not, one that
// forecasts at random, one that forecasts the opposite, and one that does not answer. Each is
// compared with engine static, which gets the same outcomes.
#include "worker/engine_both.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include "tests/support/endpoint_stub.h"
#include "worker/llm/llm.h"
#include "worker/model/engine_static.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEARNT 80
#define FRESH 60
#define BATCH 20

enum model { MODEL_KNOWS, MODEL_ANYTHING, MODEL_OPPOSITE, MODEL_DEAD };

struct fixture {
    char *dir, *other;
    uv_loop_t loop;
    struct stub *stub;
    struct llm_config config;
    void *both, *alone;
    enum model model;
    // The result of the last call:
    size_t done;
    struct err err;
    struct forecast_reply reply;
    struct observed observed;
    struct worker_status status;
};

// ---- candidates: half of the speed is in a parameter, half only in the source ----

static double seen(size_t number)
{
    return (double)(stats_philox(1, number, 0) % 5) / 2 - 1;
}

static double hidden(size_t number)
{
    return (double)(stats_philox(2, number, 0) % 5) / 2 - 1;
}

static double truth(size_t number)
{
    return seen(number) + hidden(number);
}

static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    static char body[512];
    struct fixture *f = owner;
    const char *mark = strstr(request->body, "candidate number ");
    size_t number = mark ? strtoul(mark + strlen("candidate number "), NULL, 10) : 0;
    double said = f->model == MODEL_KNOWS      ? truth(number)
                  : f->model == MODEL_OPPOSITE ? -truth(number)
                                               : (double)(stats_philox(3, number, 0) % 9) / 2 - 2;

    if (f->model == MODEL_DEAD) {
        reply->status = 404;
        reply->body = "{}";
        return;
    }
    (void)snprintf(body, sizeof(body),
                   "{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"%c\\\","
                   "\\\"p_correct\\\":0.9}\"}}],\"usage\":{\"prompt_tokens\":100,"
                   "\"completion_tokens\":10}}",
                   (int)('A' + bin_of(said)));
    reply->status = 200;
    reply->body = body;
}

static void fill_candidate(struct candidate_facts *ret, size_t number, bool source)
{
    message_init(&candidate_facts_message, ret);
    ret->id = number;
    ret->params = xcalloc(1, sizeof(*ret->params));
    ret->params_count = 1;
    ret->params[0] = (struct fact){.name = xstrdup("P"), .value = exp2(seen(number))};
    if (source) {
        ret->source.data = (unsigned char *)xasprintf("// candidate number %zu", number);
        ret->source.len = strlen((char *)ret->source.data);
    }
}

// ---- calls ----

static void came(struct fixture *f, const struct err *error)
{
    f->done++;
    f->err = error ? *error : (struct err)ERR_INIT;
    uv_stop(&f->loop);
}

static void on_forecast(void *owner, const struct err *error, const void *reply)
{
    struct fixture *f = owner;

    message_clear(&forecast_reply_message, &f->reply);
    message_init(&forecast_reply_message, &f->reply);
    if (reply) {
        message_copy(&forecast_reply_message, &f->reply, reply);
    }
    came(f, error);
}

static void on_observed(void *owner, const struct err *error, const void *reply)
{
    struct fixture *f = owner;

    f->observed = reply ? *(const struct observed *)reply : (struct observed){.added = 0};
    came(f, error);
}

static void on_status(void *owner, const struct err *error, const void *reply)
{
    struct fixture *f = owner;

    message_clear(&worker_status_message, &f->status);
    message_copy(&worker_status_message, &f->status, reply);
    came(f, error);
}

static void wait(struct fixture *f)
{
    while (f->done == 0) {
        (void)uv_run(&f->loop, UV_RUN_DEFAULT); // returns after uv_stop
    }
    f->done = 0;
    assert_int_equal(f->err.code, ERR_NONE);
}

static void post(struct fixture *f, const struct engine_ops *ops, size_t from, size_t count,
                 bool screening)
{
    struct forecast_request request;

    message_init(&forecast_request_message, &request);
    request.problem = xstrdup("axpy");
    request.device_class = xstrdup("H200");
    request.search = xstrdup("s1");
    request.incumbent_log2 = 1;
    request.margin_log2 = 0;
    request.screening = screening;
    request.context = xcalloc(1, sizeof(*request.context));
    message_init(&search_context_message, request.context);
    request.context->language = xstrdup("cuda");
    request.candidates = xcalloc(count, sizeof(*request.candidates));
    request.candidates_count = count;
    for (size_t i = 0; i < count; i++) {
        fill_candidate(&request.candidates[i], from + i, true);
    }
    ops->forecast(ops == &engine_both ? f->both : f->alone, &request, on_forecast, f);
}

static void post_forecast(struct fixture *f, const struct engine_ops *ops, size_t from,
                          size_t count)
{
    post(f, ops, from, count, false);
}

static void forecast(struct fixture *f, const struct engine_ops *ops, size_t from, size_t count)
{
    post_forecast(f, ops, from, count);
    wait(f);
    assert_int_equal(f->reply.forecasts_count, count);
}

// Adds the outcomes of the candidates in f->reply, with their forecasts.
static void observe(struct fixture *f, const struct engine_ops *ops)
{
    struct observe observe;

    message_init(&observe_message, &observe);
    observe.problem = xstrdup("axpy");
    observe.device_class = xstrdup("H200");
    observe.outcomes_count = f->reply.forecasts_count;
    observe.outcomes = xcalloc(observe.outcomes_count, sizeof(*observe.outcomes));
    for (size_t i = 0; i < observe.outcomes_count; i++) {
        const struct forecast *said = &f->reply.forecasts[i];
        struct outcome *outcome = &observe.outcomes[i];

        message_init(&outcome_message, outcome);
        outcome->candidate = xcalloc(1, sizeof(*outcome->candidate));
        fill_candidate(outcome->candidate, said->id, false);
        outcome->verdict = VERDICT_FASTER;
        outcome->log2 = truth(said->id);
        outcome->incumbent_log2 = 1;
        outcome->margin_log2 = 0;
        outcome->propensity = 1;
        outcome->p_improves = said->p_improves;
        outcome->key = xasprintf("s1/%llu", (unsigned long long)said->id);
        if (said->raw) {
            outcome->raw = xcalloc(1, sizeof(*outcome->raw));
            message_copy(&raw_forecast_message, outcome->raw, said->raw);
        }
    }
    ops->observe(ops == &engine_both ? f->both : f->alone, &observe, on_observed, f);
    wait(f);
}

static void learn(struct fixture *f, const struct engine_ops *ops)
{
    for (size_t from = 0; from < LEARNT; from += BATCH) {
        forecast(f, ops, from, BATCH);
        observe(f, ops);
        assert_int_equal(f->observed.added, BATCH);
    }
}

// The mean absolute error of forecasts whose outcomes are not added.
static double error_of(struct fixture *f, const struct engine_ops *ops)
{
    forecast(f, ops, 1000, FRESH);
    double sum = 0;
    for (size_t i = 0; i < FRESH; i++) {
        sum += fabs(f->reply.forecasts[i].mean_log2 - truth(1000 + i));
    }
    return sum / FRESH;
}

// ---- opening and closing ----

static void open_both(struct fixture *f)
{
    static struct endpoint_config endpoint;
    struct engine_config config = {.loop = &f->loop, .state_dir = f->dir, .llm = &f->config};

    endpoint = (struct endpoint_config){
        .url = stub_url(f->stub), .model = "tester", .weight = 1, .in_flight = 16};
    f->config.endpoints = &endpoint;
    struct err err = ERR_INIT;
    if (engine_both.open(&f->both, &config, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct engine_config config = {.loop = &f->loop};

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-both", NULL), 0);
    assert_int_equal(file_make_temp_dir(&f->other, "kcast-alone", NULL), 0);
    uv_loop_init(&f->loop);
    f->stub = stub_start(&f->loop, answer, f);
    f->config = (struct llm_config){
        .count = 1, .samples = 1, .max_tokens = 100, .temperature = 0.5, .deadline_ms = 20000};
    open_both(f);
    config.state_dir = f->other;
    assert_int_equal(engine_static.open(&f->alone, &config, NULL), 0);
    message_init(&forecast_reply_message, &f->reply);
    message_init(&worker_status_message, &f->status);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    engine_both.close(f->both);
    engine_static.close(f->alone);
    stub_stop(f->stub);
    while (uv_run(&f->loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&f->loop), 0);
    message_clear(&forecast_reply_message, &f->reply);
    message_clear(&worker_status_message, &f->status);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    assert_int_equal(file_remove_tree(f->other, NULL), 0);
    free(f->dir);
    free(f->other);
    free(f);
    return 0;
}

// ---- tests ----

// The two engines have learnt the same outcomes, and the screening's model knows no answers of
// language models. So both screen alike, and nobody is asked.
static void a_screening_is_the_static_engines_and_asks_nobody(void **state)
{
    struct fixture *f = *state;
    double said[FRESH];

    f->model = MODEL_KNOWS;
    learn(f, &engine_both);
    learn(f, &engine_static);
    post(f, &engine_static, 1000, FRESH, true);
    wait(f);
    for (size_t i = 0; i < FRESH; i++) {
        said[i] = f->reply.forecasts[i].mean_log2;
    }
    size_t asked = stub_requests(f->stub);
    post(f, &engine_both, 1000, FRESH, true);
    wait(f);
    assert_int_equal(f->reply.forecasts_count, FRESH);
    assert_int_equal(stub_requests(f->stub), asked);
    for (size_t i = 0; i < FRESH; i++) {
        const struct forecast *forecast = &f->reply.forecasts[i];
        assert_int_equal(forecast->id, 1000 + i);
        assert_string_equal(forecast->engine, "both");
        assert_null(forecast->raw);
        assert_int_equal(forecast->trained_rows, LEARNT);
        assert_true(forecast->mean_log2 == said[i]);
    }
    assert_true(engine_both.screens);
    forecast(f, &engine_both, 1000, 1); // what was chosen is asked about
    assert_int_equal(stub_requests(f->stub), asked + 1);
}

static void a_model_that_knows_makes_forecasts_better(void **state)
{
    struct fixture *f = *state;

    f->model = MODEL_KNOWS;
    learn(f, &engine_both);
    learn(f, &engine_static);
    double both = error_of(f, &engine_both), alone = error_of(f, &engine_static);
    print_message("mean error, a model that knows: %.3f, static alone: %.3f\n", both, alone);
    assert_true(both < 0.5 * alone);
}

static void what_says_anything_does_not_make_them_worse(void **state)
{
    struct fixture *f = *state;

    f->model = MODEL_ANYTHING;
    learn(f, &engine_both);
    learn(f, &engine_static);
    double both = error_of(f, &engine_both), alone = error_of(f, &engine_static);
    print_message("mean error, a model that says anything: %.3f, static alone: %.3f\n", both,
                  alone);
    assert_true(both < 1.15 * alone);
}

static void what_says_the_opposite_does_not_make_them_worse(void **state)
{
    struct fixture *f = *state;

    f->model = MODEL_OPPOSITE;
    learn(f, &engine_both);
    learn(f, &engine_static);
    double both = error_of(f, &engine_both), alone = error_of(f, &engine_static);
    print_message("mean error, a model that lies: %.3f, static alone: %.3f\n", both, alone);
    assert_true(both < 1.15 * alone);
}

static void a_dead_endpoint_leaves_static_alone(void **state)
{
    struct fixture *f = *state;

    f->model = MODEL_DEAD;
    forecast(f, &engine_both, 0, 1);
    assert_true(f->reply.forecasts[0].confidence == 0);
    assert_non_null(strstr(f->reply.forecasts[0].reason, "404"));
    learn(f, &engine_both);
    learn(f, &engine_static);
    double both = error_of(f, &engine_both);
    assert_null(f->reply.forecasts[0].raw);
    assert_null(f->reply.forecasts[0].reason);
    assert_true(f->reply.forecasts[0].confidence > 0);
    assert_true(both == error_of(f, &engine_static));
}

static void an_endpoint_that_dies_later_loses_nothing(void **state)
{
    struct fixture *f = *state;

    f->model = MODEL_KNOWS;
    learn(f, &engine_both);
    f->model = MODEL_DEAD;
    forecast(f, &engine_both, 2000, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        assert_null(f->reply.forecasts[i].raw);
        assert_int_equal(f->reply.forecasts[i].trained_rows, LEARNT);
        assert_true(isfinite(f->reply.forecasts[i].mean_log2));
    }
    observe(f, &engine_both);
    assert_int_equal(f->observed.rows, LEARNT + BATCH);
}

static void before_there_is_a_static_model_the_language_model_is_heard(void **state)
{
    struct fixture *f = *state;

    f->model = MODEL_KNOWS;
    forecast(f, &engine_both, 0, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        const struct forecast *said = &f->reply.forecasts[i];

        assert_string_equal(said->engine, "both");
        assert_memory_equal(said->raw->model, "llm tester #", 12);
        assert_true(fabs(said->mean_log2 - bins_mean(said->raw->bins)) < 0.2); // flattened a little
        assert_true(said->confidence == 0);
        assert_non_null(said->reason);
        assert_int_equal(said->input_tokens, 100);
        assert_string_equal(said->rung, "json_schema");
    }
}

static void a_restart_knows_the_same(void **state)
{
    struct fixture *f = *state;

    f->model = MODEL_KNOWS;
    learn(f, &engine_both);
    forecast(f, &engine_both, 1000, BATCH);
    struct forecast_reply before;
    message_copy(&forecast_reply_message, &before, &f->reply);
    engine_both.close(f->both);
    open_both(f);
    forecast(f, &engine_both, 1000, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        assert_true(f->reply.forecasts[i].mean_log2 == before.forecasts[i].mean_log2);
        assert_true(f->reply.forecasts[i].p_improves == before.forecasts[i].p_improves);
        assert_true(f->reply.forecasts[i].confidence == before.forecasts[i].confidence);
    }
    message_clear(&forecast_reply_message, &before);
    observe(f, &engine_both);
    observe(f, &engine_both); // the same outcomes again
    assert_int_equal(f->observed.added, 0);
    engine_both.status(f->both, on_status, f);
    wait(f);
    assert_string_equal(f->status.engine, "both");
    assert_int_equal(f->status.outcomes, LEARNT + BATCH);
    assert_int_equal(f->status.endpoints_count, 1);
    assert_int_equal(f->status.cache_hits, BATCH); // the answers were paid for before
}

static void closing_answers_what_waits(void **state)
{
    struct fixture *f = *state;

    post_forecast(f, &engine_both, 0, BATCH);
    engine_both.close(f->both);
    while (f->done == 0) {
        (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    }
    assert_int_equal(f->done, 1);
    if (f->err.code != ERR_STOPPED) { // engine static had begun with it
        assert_int_equal(f->reply.forecasts_count, BATCH);
    }
    f->done = 0;
    open_both(f);
}

static void without_an_endpoint_it_does_not_begin(void **state)
{
    struct fixture *f = *state;
    struct engine_config config = {.loop = &f->loop, .state_dir = f->dir};
    struct err err = ERR_INIT;
    void *engine = NULL;

    assert_int_equal(engine_both.open(&engine, &config, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "--endpoint"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_screening_is_the_static_engines_and_asks_nobody),
        TEST(a_model_that_knows_makes_forecasts_better),
        TEST(what_says_anything_does_not_make_them_worse),
        TEST(what_says_the_opposite_does_not_make_them_worse),
        TEST(a_dead_endpoint_leaves_static_alone),
        TEST(an_endpoint_that_dies_later_loses_nothing),
        TEST(before_there_is_a_static_model_the_language_model_is_heard),
        TEST(a_restart_knows_the_same),
        TEST(closing_answers_what_waits),
        TEST(without_an_endpoint_it_does_not_begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
