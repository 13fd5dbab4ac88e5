// Every output format against a real server, whose base URL is in KCAST_MODEL_URL
// (e2e/test_model.sh starts one). The server understands the request and counts tokens, and its
// answer can be read.
#include "common/strbuf.h"
#include "proto/bins.h"
#include "worker/endpoint/endpoint.h"
#include "worker/llm/answer.h"
#include "worker/llm/chat_request.h"
#include "worker/prompt/prompt.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DEADLINE_MS 100000
#define MAX_TOKENS 300

struct exchange {
    struct request_style style;
    bool done;
    long status;
    int read; // what answer_read() returned
    struct answer answer;
    struct err err, why;
    char body[2048]; // the beginning of the answer
};

static void build(void *owner, size_t endpoint, struct strbuf *body)
{
    const struct exchange *exchange = owner;
    struct chat_request request = {
        .model = "smollm2",
        .search = "Problem: sum of an array, in c\nDevice: cpu\n",
        .candidate = "\nThe candidate:\ndouble s = 0; for (i = 0; i < n; i++) s += "
                     "x[i];\nIt is the baseline itself. How fast is it? Answer with "
                     "the JSON object only.\n",
        .max_tokens = MAX_TOKENS,
        .temperature = 0,
        .form = &answer_form_forecast};

    (void)endpoint;
    struct strbuf rules = STRBUF_INIT;
    prompt_rules(&rules);
    request.rules = strbuf_text(&rules);
    chat_request_body(body, &request, &exchange->style);
    strbuf_release(&rules);
}

static void on_done(void *owner, const struct endpoint_result *result)
{
    struct exchange *exchange = owner;
    size_t len =
        result->body.len < sizeof(exchange->body) ? result->body.len : sizeof(exchange->body) - 1;

    exchange->done = true;
    exchange->status = result->status;
    exchange->err = result->err;
    if (len > 0) {
        memcpy(exchange->body, result->body.data, len);
    }
    if (result->err.code == ERR_NONE && result->status == 200) {
        exchange->read = answer_read(&exchange->answer, (const char *)result->body.data,
                                     result->body.len, &exchange->why, &exchange->err);
    }
}

// Makes one request in a format. Returns false when there is no server.
static bool ask_in(struct exchange *exchange, enum output_format format)
{
    struct endpoint_config config = {
        .url = getenv("KCAST_MODEL_URL"), .model = "smollm2", .weight = 1, .in_flight = 1};
    struct endpoint_call call = {
        .build = build, .done = on_done, .owner = exchange, .deadline_ms = DEADLINE_MS};

    if (!config.url) {
        puts("skipped because KCAST_MODEL_URL names no server; scripts/install-model.sh installs "
             "one "
             "for tests/e2e/test_model.sh");
        return false;
    }
    *exchange = (struct exchange){.style = {.format = format}, .err = ERR_INIT, .why = ERR_INIT};
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct endpoints *endpoints;
    struct err err = ERR_INIT;
    assert_int_equal(endpoints_create(&endpoints, &loop, &config, 1, NULL, &err), 0);
    endpoints_post(endpoints, &call);
    while (!exchange->done) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    endpoints_close(endpoints);
    while (uv_run(&loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&loop), 0);
    printf("%s: status %ld, %s%s%s\n", output_format_name(format), exchange->status,
           exchange->answer.has_forecast ? "a forecast" : "no forecast",
           exchange->why.text[0] ? ": " : "", exchange->why.text);
    if (exchange->status != 200 || exchange->read != 0) {
        fail_msg("%s: status %ld, %s: %s", output_format_name(format), exchange->status,
                 exchange->err.text, exchange->body);
    }
    assert_in_range(exchange->answer.usage.input, 300, 4096);
    assert_in_range(exchange->answer.usage.output, 1, MAX_TOKENS);
    return true;
}

static double sum_of(const struct answer_forecast *forecast)
{
    double sum = 0;

    for (size_t i = 0; i < BIN_COUNT; i++) {
        assert_true(forecast->bins[i] >= 0);
        sum += forecast->bins[i];
    }
    return sum;
}

// Formats that bind the model to the schema. Even a poor model gives a forecast then.
static void expect_forecast(enum output_format format, enum answer_place place)
{
    struct exchange exchange;

    if (!ask_in(&exchange, format)) {
        skip();
    }
    if (!exchange.answer.has_forecast) {
        fail_msg("%s: %s: %s", output_format_name(format), exchange.why.text, exchange.body);
    }
    assert_int_equal(exchange.answer.forecast.place, place);
    assert_true(fabs(sum_of(&exchange.answer.forecast) - 1) < 1e-9);
    assert_in_range(exchange.answer.forecast.stated, 0, BIN_COUNT - 1);
    answer_release(&exchange.answer);
}

// Formats that do not bind the model. It may fail to give a forecast, and then there is a reason.
// Tools are among these formats, since servers ignore them when the model's chat template has none.
static void expect_forecast_or_reason(enum output_format format)
{
    struct exchange exchange;

    if (!ask_in(&exchange, format)) {
        skip();
    }
    if (exchange.answer.has_forecast) {
        assert_true(fabs(sum_of(&exchange.answer.forecast) - 1) < 1e-9);
    } else {
        assert_int_not_equal(exchange.why.text[0], '\0');
    }
    answer_release(&exchange.answer);
}

static void a_strict_schema_gives_a_forecast(void **state)
{
    (void)state;
    expect_forecast(OUTPUT_SCHEMA, ANSWER_CONTENT);
}

static void a_forced_tool_gives_an_answer(void **state)
{
    (void)state;
    expect_forecast_or_reason(OUTPUT_FORCED);
}

static void a_required_tool_gives_an_answer(void **state)
{
    (void)state;
    expect_forecast_or_reason(OUTPUT_REQUIRED);
}

static void json_mode_gives_an_answer(void **state)
{
    (void)state;
    expect_forecast_or_reason(OUTPUT_JSON);
}

static void plain_text_gives_an_answer(void **state)
{
    (void)state;
    expect_forecast_or_reason(OUTPUT_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strict_schema_gives_a_forecast),
        cmocka_unit_test(a_forced_tool_gives_an_answer),
        cmocka_unit_test(a_required_tool_gives_an_answer),
        cmocka_unit_test(json_mode_gives_an_answer),
        cmocka_unit_test(plain_text_gives_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
