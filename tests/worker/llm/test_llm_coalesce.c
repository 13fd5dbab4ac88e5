// Request coalescing: equal questions at the same moment are asked and paid for once. Where the
// first one ends for a reason of its own, the others go on. The endpoint answers as the test says.
#include "common/file.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include "tests/support/endpoint_stub.h"
#include "worker/llm/llm.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ASKED_MAX 8

struct fixture {
    char *dir;
    uv_loop_t loop;
    struct stub *stub;
    struct llm *llm;
    struct llm_config config;
    struct forecast_request first, second; // equal but for the search
    // What the stub answers:
    int status;
    bool silent;
    size_t unusable; // so many answers are empty at first
    const char *content;
    // The results, in the order of asking:
    struct asked {
        struct fixture *f;
        bool done;
        char reason[ERR_TEXT_MAX]; // "": there is a forecast
        struct llm_answer answer;  // its texts are not valid
        struct propose_reply proposed;
    } asked[ASKED_MAX];
    size_t open;
};

static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    static char body[4096];
    struct fixture *f = owner;
    bool unusable = f->unusable > 0;

    (void)request;
    f->unusable -= unusable;
    reply->status = f->status;
    reply->silent = f->silent;
    snprintf(body, sizeof(body),
             "{\"choices\":[{\"message\":{\"content\":\"%s\"}}],\"usage\":{\"prompt_tokens\":1000,"
             "\"completion_tokens\":10}}",
             unusable ? "I would rather not." : f->content);
    reply->body = body;
}

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (unsigned char *)xstrdup(text), .len = strlen(text)};
}

static void make_request(struct forecast_request *request, const char *search)
{
    message_init(&forecast_request_message, request);
    request->problem = xstrdup("axpy");
    request->device_class = xstrdup("H200");
    request->search = xstrdup(search);
    request->incumbent_log2 = 0;
    request->context = xcalloc(1, sizeof(*request->context));
    message_init(&search_context_message, request->context);
    request->context->language = xstrdup("cuda");
    request->context->baseline = bytes_of("the baseline");
    request->candidates = xcalloc(2, sizeof(*request->candidates));
    request->candidates_count = 2;
    for (size_t i = 0; i < 2; i++) {
        message_init(&candidate_facts_message, &request->candidates[i]);
        request->candidates[i].source = bytes_of(i == 0 ? "one" : "two");
    }
}

static void open_llm(struct fixture *f)
{
    struct endpoint_config endpoint = {.url = stub_url(f->stub),
                                       .model = "tester",
                                       .weight = 1,
                                       .in_flight = 16,
                                       .price_input = 1,
                                       .price_output = 10};
    f->config.endpoints = &endpoint;
    assert_int_equal(llm_create(&f->llm, &f->loop, &f->config, f->dir, NULL), 0);
}

static void with_config(struct fixture *f, double tokens_per_search, uint64_t deadline_ms)
{
    llm_close(f->llm);
    f->config.limits.search.tokens = tokens_per_search;
    f->config.deadline_ms = deadline_ms;
    open_llm(f);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-share", NULL), 0);
    uv_loop_init(&f->loop);
    f->stub = stub_start(&f->loop, answer, f);
    f->status = 200;
    f->content =
        "{\\\"bin\\\":\\\"G\\\",\\\"p\\\":{\\\"F\\\":0.2,\\\"G\\\":0.8},\\\"p_correct\\\":0.9}";
    f->config = (struct llm_config){
        .count = 1, .samples = 1, .max_tokens = 100, .temperature = 0.5, .deadline_ms = 20000};
    open_llm(f);
    make_request(&f->first, "s1");
    make_request(&f->second, "s2");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    llm_close(f->llm);
    stub_stop(f->stub);
    while (uv_run(&f->loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&f->loop), 0);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    for (size_t i = 0; i < ASKED_MAX; i++) {
        message_clear(&propose_reply_message, &f->asked[i].proposed);
    }
    message_clear(&forecast_request_message, &f->first);
    message_clear(&forecast_request_message, &f->second);
    free(f->dir);
    free(f);
    return 0;
}

static void end(struct asked *asked)
{
    assert_false(asked->done);
    asked->done = true;
    if (--asked->f->open == 0) {
        uv_stop(&asked->f->loop);
    }
}

static void on_answer(void *owner, const struct llm_answer *answer)
{
    struct asked *asked = owner;

    asked->answer = *answer;
    (void)snprintf(asked->reason, sizeof(asked->reason), "%s",
                   answer->reason ? answer->reason : "");
    end(asked);
}

static void ask(struct fixture *f, size_t number, const struct forecast_request *request,
                size_t candidate)
{
    f->asked[number] = (struct asked){.f = f};
    f->open++;
    llm_forecast(f->llm, request, candidate, on_answer, &f->asked[number]);
}

static void wait(struct fixture *f)
{
    while (f->open > 0) {
        (void)uv_run(&f->loop, UV_RUN_DEFAULT); // returns after uv_stop
    }
}

// Asks four times about one candidate, for the first search and then for the second.
static void ask_four(struct fixture *f)
{
    for (size_t i = 0; i < 4; i++) {
        ask(f, i, i < 2 ? &f->first : &f->second, 0);
    }
    wait(f);
}

static void the_same_question_at_the_same_moment_is_paid_once(void **state)
{
    struct fixture *f = *state;

    ask(f, 4, &f->first, 1); // another candidate
    ask_four(f);
    assert_int_equal(stub_requests(f->stub), 2);
    for (size_t i = 0; i < 5; i++) {
        const struct llm_answer *answer = &f->asked[i].answer;
        bool pays = i == 0 || i == 4;

        assert_string_equal(f->asked[i].reason, "");
        assert_true(fabs(answer->bins[6] - 0.8) < 1e-9 && fabs(answer->p_correct - 0.9) < 1e-9);
        assert_int_equal(answer->input_tokens, pays ? 1000 : 0);
        assert_int_equal(answer->output_tokens, pays ? 10 : 0);
        assert_true(fabs(answer->cost - (pays ? 0.0011 : 0)) < 1e-9);
        assert_true(answer->cached == !pays);
    }
    struct worker_status status;
    message_init(&worker_status_message, &status);
    llm_status(f->llm, &status);
    assert_int_equal(status.input_tokens, 2000);
    assert_int_equal(status.output_tokens, 20);
    assert_true(fabs(status.cost - 0.0022) < 1e-9);
    assert_int_equal(status.cache_hits, 3);
    message_clear(&worker_status_message, &status);
    ask_four(f); // the answer is cached now
    assert_int_equal(stub_requests(f->stub), 2);
}

static void a_failure_of_the_endpoint_is_everybodys(void **state)
{
    struct fixture *f = *state;

    f->status = 413;
    ask_four(f);
    assert_int_equal(stub_requests(f->stub), 1);
    for (size_t i = 0; i < 4; i++) {
        assert_non_null(strstr(f->asked[i].reason, "413"));
        assert_false(f->asked[i].answer.cached);
    }
    f->status = 200; // the failure is not remembered
    ask_four(f);
    assert_string_equal(f->asked[3].reason, "");
    assert_int_equal(stub_requests(f->stub), 2);
}

static void whose_money_runs_out_leaves_the_question_to_the_next(void **state)
{
    struct fixture *f = *state;

    with_config(f, 1500, 20000);
    f->unusable = 2; // 2020 tokens, the limit of the first search
    ask_four(f);
    assert_non_null(strstr(f->asked[0].reason, "used up its 1500 tokens"));
    assert_non_null(strstr(f->asked[1].reason, "used up its 1500 tokens"));
    assert_int_equal(f->asked[0].answer.input_tokens, 2000);
    assert_int_equal(f->asked[1].answer.input_tokens, 0);
    assert_string_equal(f->asked[2].reason, "");
    assert_string_equal(f->asked[3].reason, "");
    assert_int_equal(f->asked[2].answer.input_tokens, 1000);
    assert_int_equal(f->asked[3].answer.input_tokens, 0);
    assert_int_equal(stub_requests(f->stub), 3);
}

static void a_deadline_is_each_ones_own(void **state)
{
    struct fixture *f = *state;

    with_config(f, 0, 50);
    f->silent = true;
    ask_four(f); // all have the same deadline
    assert_int_equal(stub_requests(f->stub), 1);
    for (size_t i = 0; i < 4; i++) {
        assert_true(f->asked[i].reason[0] != '\0');
        assert_string_equal(f->asked[i].reason, f->asked[0].reason);
    }
}

static void when_the_worker_stops_everybody_is_told(void **state)
{
    struct fixture *f = *state;

    f->silent = true;
    for (size_t i = 0; i < 4; i++) {
        ask(f, i, &f->first, i == 3);
    }
    llm_close(f->llm);
    assert_int_equal(f->open, 0);
    for (size_t i = 0; i < 4; i++) {
        assert_true(f->asked[i].reason[0] != '\0');
    }
    open_llm(f); // closed by tear_down
}

static void on_proposed(void *owner, const struct propose_reply *reply)
{
    struct asked *asked = owner;

    message_copy(&propose_reply_message, &asked->proposed, reply);
    end(asked);
}

static void propose(struct fixture *f, size_t number, uint64_t draw)
{
    struct forecast_request like;

    make_request(&like, "s1");
    struct propose_request request;
    message_init(&propose_request_message, &request);
    request.problem = xstrdup("axpy");
    request.device_class = xstrdup("H200");
    request.search = xstrdup(number == 0 ? "s1" : "s2");
    request.context = like.context;
    request.count = 3;
    request.draw = draw;
    like.context = NULL;
    message_clear(&forecast_request_message, &like);
    message_clear(&propose_reply_message, &f->asked[number].proposed);
    f->asked[number] = (struct asked){.f = f};
    f->open++;
    llm_propose(f->llm, &request, on_proposed, &f->asked[number]);
}

static void propose_twice(struct fixture *f)
{
    propose(f, 0, 1);
    propose(f, 1, 1);
    wait(f);
}

static void candidates_are_shared_as_well(void **state)
{
    struct fixture *f = *state;

    f->status = 413;
    propose_twice(f);
    assert_int_equal(stub_requests(f->stub), 1);
    assert_non_null(strstr(f->asked[1].proposed.reason, "413"));
    f->status = 200;
    f->content = "```c\\n//@ launch a grid=(1)\\n__global__ void a() {}\\n```";
    propose_twice(f);
    assert_int_equal(stub_requests(f->stub), 2);
    for (size_t i = 0; i < 2; i++) {
        const struct propose_reply *reply = &f->asked[i].proposed;

        assert_int_equal(reply->proposals_count, 1);
        assert_string_equal(reply->model, "tester");
        assert_int_equal(reply->input_tokens, i == 0 ? 1000 : 0);
        assert_true(reply->cached == (i == 1));
        assert_int_equal(reply->first_tokens,
                         1010); // the tokens of the answer, whoever paid for it
        assert_true(fabs(reply->first_cost - 0.0011) < 1e-9);
    }
    propose_twice(f); // the answer is cached now
    assert_int_equal(stub_requests(f->stub), 2);
    assert_true(f->asked[0].proposed.cached && f->asked[0].proposed.input_tokens == 0);
    assert_int_equal(f->asked[0].proposed.first_tokens, 1010);
}

// Of two models at one server, the one whose candidates are improvements is asked for more.
static void the_model_whose_candidates_improve_is_asked_first(void **state)
{
    struct fixture *f = *state;
    char *path = xasprintf("%s/two", f->dir);

    assert_int_equal(file_make_dirs(path, NULL), 0);

    llm_close(f->llm);
    struct endpoint_config endpoint[2];
    for (size_t i = 0; i < 2; i++) {
        endpoint[i] = (struct endpoint_config){.url = stub_url(f->stub),
                                               .model = i == 0 ? "idle" : "able",
                                               .weight = 1,
                                               .in_flight = 16};
    }
    f->config.endpoints = endpoint;
    f->config.count = 2;
    assert_int_equal(llm_create(&f->llm, &f->loop, &f->config, path, NULL), 0);
    f->content = "```c\\n//@ launch a grid=(1)\\n__global__ void a() {}\\n```";
    size_t count[2] = {0};
    for (uint64_t draw = 0; draw < 40; draw++) {
        char *key = xasprintf("s1/%llu", (unsigned long long)draw);

        propose(f, 0, draw);
        wait(f);
        bool able = strcmp(f->asked[0].proposed.model, "able") == 0;
        struct candidate_facts facts = {.id = draw};
        struct outcome outcome = {.candidate = &facts,
                                  .model = f->asked[0].proposed.model,
                                  .gain_log2 = able ? 0.1 : NAN,
                                  .key = key};
        llm_observe(f->llm, &(struct observe){.outcomes = &outcome, .outcomes_count = 1});
        count[able]++;
        free(key);
    }
    assert_true(count[1] >= 25 && count[0] >= 1);
    assert_int_equal(stub_requests(f->stub), 40);
    struct worker_status status;
    message_init(&worker_status_message, &status);
    llm_status(f->llm, &status);
    assert_int_equal(status.endpoints[1].requests, count[1]);
    assert_int_equal(status.endpoints[1].proposals, count[1]);
    assert_true(fabs(status.endpoints[1].gain_log2 - 0.1 * (double)count[1]) < 1e-9);
    assert_true(status.endpoints[1].share > 0.5);
    message_clear(&worker_status_message, &status);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_same_question_at_the_same_moment_is_paid_once),
        TEST(a_failure_of_the_endpoint_is_everybodys),
        TEST(whose_money_runs_out_leaves_the_question_to_the_next),
        TEST(a_deadline_is_each_ones_own),
        TEST(when_the_worker_stops_everybody_is_told),
        TEST(candidates_are_shared_as_well),
        TEST(the_model_whose_candidates_improve_is_asked_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
