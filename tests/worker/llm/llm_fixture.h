// The llm engine against an endpoint that answers as the test says: what its tests share.
#ifndef TESTS_WORKER_LLM_LLM_FIXTURE_H
#define TESTS_WORKER_LLM_LLM_FIXTURE_H

#include "common/file.h"
#include "common/mem.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include "tests/support/endpoint_stub.h"
#include "worker/llm/engine_llm.h"
#include "worker/llm/llm.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CANDIDATES 2

struct fixture {
    char *dir;
    uv_loop_t loop;
    struct stub *stub;
    void *engine;
    struct llm_config config;
    // What the stub does:
    const char *refuse; // bodies with this in them get status 400 and this word
    const char *content;
    int status;
    char *last_body;
    size_t unusable; // so many answers first have no forecast
    // What came:
    bool done;
    struct err err;
    struct forecast_reply reply;
    struct observed observed;
    struct worker_status worker;
};

static inline void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    static char body[4096];
    struct fixture *f = owner;

    free(f->last_body);
    f->last_body = xstrdup(request->body);
    reply->status = f->status;
    reply->body = "{}";
    if (f->refuse && strstr(request->body, f->refuse)) {
        reply->status = 400;
        snprintf(body, sizeof(body), "{\"error\":{\"message\":\"no %s here\"}}", f->refuse);
        reply->body = body;
    } else if (f->status == 200) {
        snprintf(
            body, sizeof(body),
            "{\"choices\":[{\"message\":{\"content\":\"%s\"}}],\"usage\":{\"prompt_tokens\":1000,"
            "\"completion_tokens\":10}}",
            f->unusable > 0 ? "I would rather not." : f->content);
        f->unusable -= f->unusable > 0;
        reply->body = body;
    }
}

static inline void open_engine(struct fixture *f)
{
    static struct endpoint_config endpoint;
    struct engine_config config = {.loop = &f->loop, .state_dir = f->dir, .llm = &f->config};

    endpoint = (struct endpoint_config){.url = stub_url(f->stub),
                                        .model = "tester",
                                        .weight = 1,
                                        .in_flight = 16,
                                        .price_input = 1,
                                        .price_output = 10};
    f->config.endpoints = &endpoint;
    struct err err = ERR_INIT;
    if (engine_llm.open(&f->engine, &config, &err) < 0) {
        fail_msg("%s", err.text);
    }
}

static inline int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-engine", NULL), 0);
    uv_loop_init(&f->loop);
    f->stub = stub_start(&f->loop, answer, f);
    f->status = 200;
    f->content =
        "{\\\"bin\\\":\\\"G\\\",\\\"p\\\":{\\\"F\\\":0.2,\\\"G\\\":0.8},\\\"p_correct\\\":0.9}";
    f->config = (struct llm_config){
        .count = 1, .samples = 1, .max_tokens = 100, .temperature = 0.5, .deadline_ms = 20000};
    open_engine(f);
    *state = f;
    return 0;
}

static inline void forget(struct fixture *f)
{
    message_clear(&forecast_reply_message, &f->reply);
    message_clear(&worker_status_message, &f->worker);
    message_init(&forecast_reply_message, &f->reply);
    message_init(&worker_status_message, &f->worker);
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    engine_llm.close(f->engine);
    stub_stop(f->stub);
    while (uv_run(&f->loop, UV_RUN_DEFAULT) != 0) {
    }
    forget(f);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->last_body);
    free(f->dir);
    free(f);
    return 0;
}

static inline void wait(struct fixture *f)
{
    while (!f->done) {
        (void)uv_run(&f->loop, UV_RUN_DEFAULT); // until uv_stop
    }
    f->done = false;
}

static inline void on_forecast(void *owner, const struct err *error, const void *reply)
{
    struct fixture *f = owner;

    f->done = true;
    uv_stop(&f->loop);
    f->err = error ? *error : (struct err)ERR_INIT;
    message_clear(&forecast_reply_message, &f->reply);
    message_init(&forecast_reply_message, &f->reply);
    if (reply) {
        message_copy(&forecast_reply_message, &f->reply, reply);
    }
}

static inline struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (unsigned char *)xstrdup(text), .len = strlen(text)};
}

static inline struct forecast_request request_of(const char *first, const char *second)
{
    struct forecast_request request;

    message_init(&forecast_request_message, &request);
    request.problem = xstrdup("axpy");
    request.device_class = xstrdup("H200");
    request.search = xstrdup("s1");
    request.incumbent_log2 = 0;
    request.margin_log2 = 0;
    request.context = xcalloc(1, sizeof(*request.context));
    message_init(&search_context_message, request.context);
    request.context->language = xstrdup("cuda");
    request.context->baseline = bytes_of("the baseline");
    request.context->history = xcalloc(1, sizeof(*request.context->history));
    request.context->history_count = 1;
    message_init(&tried_message, request.context->history);
    request.context->history->name = xstrdup("VEC=4");
    request.context->history->verdict = VERDICT_FASTER;
    request.context->history->log2 = 1;
    request.candidates = xcalloc(CANDIDATES, sizeof(*request.candidates));
    request.candidates_count = CANDIDATES;
    for (size_t i = 0; i < CANDIDATES; i++) {
        message_init(&candidate_facts_message, &request.candidates[i]);
        request.candidates[i].id = i + 1;
        request.candidates[i].source = bytes_of(i == 0 ? first : second);
    }
    return request;
}

static inline void ask(struct fixture *f, const char *first, const char *second)
{
    struct forecast_request request = request_of(first, second);

    engine_llm.forecast(f->engine, &request, on_forecast, f);
    wait(f);
    assert_int_equal(f->err.code, ERR_NONE);
    assert_int_equal(f->reply.forecasts_count, CANDIDATES);
}

#endif
