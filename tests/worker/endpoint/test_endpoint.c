// Requests to endpoints that answer well, badly or not at all (tests/support/endpoint_stub). Each
// has the expected result, and none of the results contains the key.
#include "common/mem.h"
#include "tests/support/endpoint_stub.h"
#include "worker/endpoint/endpoint.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#define KEY "secret-4711"

// What the stub answers, request by request. The last answer is repeated.
struct script {
    struct stub_reply reply[8];
    size_t count;
    size_t keys; // requests that carried the key
};

struct end {
    bool done;
    struct endpoint_result result;
    char body[256];
};

static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    struct script *script = owner;
    size_t at = request->number < script->count ? request->number : script->count - 1;

    script->keys += strstr(request->head, "Authorization: Bearer " KEY) ? 1 : 0;
    assert_non_null(strstr(request->head, "POST /v1/chat/completions"));
    assert_string_equal(request->body, "{\"to\":0}");
    *reply = script->reply[at];
}

static void build(void *owner, size_t endpoint, struct strbuf *body)
{
    (void)owner;
    strbuf_addf(body, "{\"to\":%zu}", endpoint * 0);
}

static void on_done(void *owner, const struct endpoint_result *result)
{
    struct end *outcome = owner;
    size_t len = result->body.len < 255 ? result->body.len : 255;

    outcome->done = true;
    outcome->result = *result;
    if (len > 0) {
        memcpy(outcome->body, result->body.data, len);
    }
    outcome->body[len] = '\0';
}

static struct endpoint_config config_of(const char *url)
{
    return (struct endpoint_config){
        .url = url, .model = "m", .key = KEY, .weight = 1, .in_flight = 64};
}

static struct end post(struct script *script, uint64_t deadline_ms)
{
    struct end outcome = {.done = false};
    struct endpoint_call call = {
        .build = build, .done = on_done, .owner = &outcome, .deadline_ms = deadline_ms};
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    struct stub *stub = stub_start(&loop, answer, script);
    struct endpoint_config config = config_of(stub_url(stub));
    struct endpoints *endpoints;
    struct err err = ERR_INIT;
    assert_int_equal(endpoints_create(&endpoints, &loop, &config, 1, NULL, &err), 0);
    endpoints_post(endpoints, &call);
    while (!outcome.done) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    endpoints_close(endpoints);
    stub_stop(stub);
    while (uv_run(&loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_null(strstr(outcome.result.err.text, KEY));
    assert_int_equal(script->keys, outcome.result.attempts);
    return outcome;
}

#define GOOD                                                                                       \
    {                                                                                              \
        .status = 200, .body = "{\"ok\":1}"                                                        \
    }

static void a_good_answer_comes_through(void **state)
{
    struct script script = {.reply = {GOOD}, .count = 1};
    struct end outcome = post(&script, 20000);

    (void)state;
    assert_int_equal(outcome.result.err.code, ERR_NONE);
    assert_int_equal(outcome.result.status, 200);
    assert_int_equal(outcome.result.attempts, 1);
    assert_string_equal(outcome.body, "{\"ok\":1}");
}

#define RAW(text)                                                                                  \
    {                                                                                              \
        .raw = text, .raw_len = sizeof(text) - 1, .cut = true                                      \
    }

// A status and headers. All of these are tried again, and the next answer counts.
static void passing_failures_are_tried_again(void **state)
{
    static const struct stub_reply bad[] = {
        {.status = 429, .headers = "Retry-After: 0\r\n"},
        {.status = 429, .headers = "retry-after-ms: 30\r\n"},
        {.status = 429, .headers = "X-RateLimit-Reset-Tokens: 20ms\r\n"},
        {.status = 429, .headers = "Retry-After: Thu, 01 Jan 1970 00:00:00 GMT\r\n"},
        {.status = 500, .body = "oops"},
        {.status = 502},
        {.status = 503, .headers = "Retry-After: nonsense\r\n"},
        {.status = 529},
        {.reset = true},
        {.status = 200, .body = "half", .cut = true},
        RAW("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"),
        RAW("I am no HTTP server\r\n\r\n"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct script script = {.reply = {bad[i], GOOD}, .count = 2};
        struct end outcome = post(&script, 20000);

        if (outcome.result.err.code != ERR_NONE || outcome.result.attempts != 2) {
            fail_msg("case %zu: %u attempts, %s", i, outcome.result.attempts,
                     outcome.result.err.text);
        }
        assert_string_equal(outcome.body, "{\"ok\":1}");
    }
}

static void what_trying_again_does_not_help_is_given_back(void **state)
{
    static const int status[] = {400, 401, 403, 404, 413, 422};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(status); i++) {
        struct script script = {.reply = {{.status = status[i], .body = "{\"error\":\"no\"}"}},
                                .count = 1};
        struct end outcome = post(&script, 20000);

        assert_int_equal(outcome.result.err.code, ERR_NONE);
        assert_int_equal(outcome.result.status, status[i]);
        assert_int_equal(outcome.result.attempts, 1);
        assert_string_equal(outcome.body, "{\"error\":\"no\"}");
    }
}

static void expect_error(struct stub_reply reply, uint64_t deadline_ms, enum err_code code,
                         const char *why)
{
    struct script script = {.reply = {reply}, .count = 1};
    struct end outcome = post(&script, deadline_ms);

    assert_int_equal(outcome.result.err.code, code);
    if (!strstr(outcome.result.err.text, why)) {
        fail_msg("%s", outcome.result.err.text);
    }
}

static void who_does_not_answer_is_given_up_at_the_deadline(void **state)
{
    (void)state;
    expect_error((struct stub_reply){.silent = true}, 200, ERR_TIMED_OUT, "did not answer in time");
    expect_error((struct stub_reply){.status = 200, .body = "slow slow slow", .drip_ms = 50}, 300,
                 ERR_TIMED_OUT, "did not answer in time");
    expect_error((struct stub_reply){.status = 302, .headers = "Location: http://127.0.0.2/\r\n"},
                 20000, ERR_DENIED, "redirects elsewhere");
}

static void what_is_too_large_is_not_read_to_its_end(void **state)
{
    size_t bomb_len = (size_t)64 << 20;
    char *zeros = calloc(1, bomb_len), *bomb = malloc((size_t)1 << 20), head[128];
    z_stream z = {.next_in = (unsigned char *)zeros, .avail_in = (unsigned)bomb_len};

    (void)state;
    expect_error((struct stub_reply){.status = 200, .endless = true}, 20000, ERR_LIMIT,
                 "more than");
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = (unsigned char *)bomb + 128;
    z.avail_out = (1 << 20) - 128;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    int head_len = snprintf(
        head, sizeof(head),
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %lu\r\n\r\n", z.total_out);
    memcpy(bomb + 128 - head_len, head, (size_t)head_len);
    expect_error((struct stub_reply){.raw = bomb + 128 - head_len,
                                     .raw_len = (size_t)head_len + z.total_out},
                 20000, ERR_LIMIT, "more than");
    (void)deflateEnd(&z);
    free(bomb);
    free(zeros);
}

// ---- several endpoints ----

struct counter {
    size_t requests;
    int status;
};

static void count_and_answer(void *owner, const struct stub_request *request,
                             struct stub_reply *reply)
{
    struct counter *counter = owner;

    (void)request;
    counter->requests++;
    *reply = (struct stub_reply){.status = counter->status, .body = "{}", .delay_ms = 1};
}

static void run_many(struct counter counter[2], const double weight[2], size_t calls)
{
    struct end *outcome = xcalloc(calls, sizeof(*outcome));
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    struct endpoint_config config[2];
    struct stub *stub[2];
    for (size_t i = 0; i < 2; i++) {
        stub[i] = stub_start(&loop, count_and_answer, &counter[i]);
        config[i] = config_of(stub_url(stub[i]));
        config[i].weight = weight[i];
    }
    struct endpoints *endpoints;
    struct err err = ERR_INIT;
    assert_int_equal(endpoints_create(&endpoints, &loop, config, 2, NULL, &err), 0);
    for (size_t i = 0; i < calls; i++) {
        struct endpoint_call call = {
            .build = build, .done = on_done, .owner = &outcome[i], .deadline_ms = 30000};

        endpoints_post(endpoints, &call);
    }
    size_t done = 0;
    while (done < calls) {
        (void)uv_run(&loop, UV_RUN_ONCE);
        done = 0;
        for (size_t i = 0; i < calls; i++) {
            done += outcome[i].done;
        }
    }
    for (size_t i = 0; i < calls; i++) {
        assert_int_equal(outcome[i].result.err.code, ERR_NONE);
        assert_int_equal(outcome[i].result.status, 200);
    }
    endpoints_close(endpoints);
    stub_stop(stub[0]);
    stub_stop(stub[1]);
    while (uv_run(&loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&loop), 0);
    free(outcome);
}

static void requests_are_shared_by_weight(void **state)
{
    (void)state;
    struct counter counter[2] = {{.status = 200}, {.status = 200}};
    const double weight[2] = {3, 1};
    run_many(counter, weight, 4);
    assert_int_equal(counter[0].requests, 3);
    assert_int_equal(counter[1].requests, 1);
}

static void one_that_fails_is_replaced_by_the_other(void **state)
{
    static const int bad[] = {500, 401};

    (void)state;
    const double weight[2] = {1, 1};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct counter counter[2] = {{.status = bad[i]}, {.status = 200}};

        run_many(counter, weight, 60);
        assert_int_equal(counter[1].requests, 60);
        assert_true(counter[0].requests < 60); // its circuit breaker opens
    }
}

static void closing_ends_what_is_open(void **state)
{
    struct end outcome = {.done = false};
    struct endpoint_call call = {
        .build = build, .done = on_done, .owner = &outcome, .deadline_ms = 60000};

    (void)state;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct script script = {.reply = {{.silent = true}}, .count = 1};
    struct stub *stub = stub_start(&loop, answer, &script);
    struct endpoint_config config = config_of(stub_url(stub));
    struct endpoints *endpoints;
    struct err err = ERR_INIT;
    assert_int_equal(endpoints_create(&endpoints, &loop, &config, 1, NULL, &err), 0);
    endpoints_post(endpoints, &call);
    while (stub_requests(stub) == 0) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    endpoints_close(endpoints);
    assert_true(outcome.done);
    assert_int_equal(outcome.result.err.code, ERR_STOPPED);
    stub_stop(stub);
    while (uv_run(&loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_answer_comes_through),
        cmocka_unit_test(passing_failures_are_tried_again),
        cmocka_unit_test(what_trying_again_does_not_help_is_given_back),
        cmocka_unit_test(who_does_not_answer_is_given_up_at_the_deadline),
        cmocka_unit_test(what_is_too_large_is_not_read_to_its_end),
        cmocka_unit_test(requests_are_shared_by_weight),
        cmocka_unit_test(one_that_fails_is_replaced_by_the_other),
        cmocka_unit_test(closing_ends_what_is_open),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
