// One question ahead of those that begin alike, for each endpoint: the others wait for what comes
// of it.
#include "tests/worker/llm/llm_fixture.h"
#include "worker/llm/llm_state.h"

#define ENDPOINTS 2
#define QUESTIONS 8
#define FIRST_MS 40 // that the first answer of an endpoint takes

// An endpoint that notes when it was asked, and when it had answered for the first time.
struct noted {
    struct fixture *f;
    size_t sources[64]; // the digit behind "kernel#", in the order of asking
    uint64_t at[64];    // loop time
    size_t count;
};

static void note(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    struct noted *noted = owner;
    const char *at = strstr(request->body, "kernel#");

    answer(noted->f, request, reply);
    reply->delay_ms = noted->count == 0 ? FIRST_MS : 0;
    if (at && noted->count < ARRAY_LEN(noted->sources)) {
        noted->at[noted->count] = uv_now(&noted->f->loop);
        noted->sources[noted->count++] = (size_t)(at[7] - '0');
    }
}

static void ask_many(struct fixture *f, size_t count)
{
    struct forecast_request request = request_of("kernel#0", "kernel#1");

    request.candidates = xrealloc(request.candidates, count, sizeof(*request.candidates));
    for (size_t i = CANDIDATES; i < count; i++) {
        char *source = xasprintf("kernel#%zu", i);

        message_init(&candidate_facts_message, &request.candidates[i]);
        request.candidates[i].id = i + 1;
        request.candidates[i].source = bytes_of(source);
        free(source);
    }
    request.candidates_count = count;
    engine_llm.forecast(f->engine, &request, on_forecast, f);
    wait(f);
    assert_int_equal(f->err.code, ERR_NONE);
    assert_int_equal(f->reply.forecasts_count, count);
}

static void the_others_wait_for_the_first_answer(void **state)
{
    struct fixture *f = *state;
    struct noted noted = {.f = f};

    engine_llm.close(f->engine);
    stub_stop(f->stub);
    f->stub = stub_start(&f->loop, note, &noted);
    open_engine(f);
    ask_many(f, 6);
    assert_int_equal(noted.count, 6);
    assert_int_equal(noted.sources[0], 0);
    assert_true(noted.at[1] >= noted.at[0] + FIRST_MS);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(f->reply.forecasts[i].id, i + 1);
        assert_int_equal(f->reply.forecasts[i].bins_count, BIN_COUNT);
    }
    // What is known needs no asking, and the beginning has been read.
    ask_many(f, 9);
    assert_int_equal(noted.count, 9);
}

static void each_endpoint_is_asked_one_ahead(void **state)
{
    struct fixture *f = *state;
    struct noted noted[ENDPOINTS] = {{.f = f}, {.f = f}};
    struct stub *stub[ENDPOINTS];
    struct endpoint_config endpoint[ENDPOINTS];
    struct engine_config config = {.loop = &f->loop, .state_dir = f->dir, .llm = &f->config};

    engine_llm.close(f->engine);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        stub[i] = stub_start(&f->loop, note, &noted[i]);
        endpoint[i] = (struct endpoint_config){
            .url = stub_url(stub[i]), .model = "tester", .weight = 1, .in_flight = 16};
    }
    f->config.endpoints = endpoint;
    f->config.count = ENDPOINTS;
    assert_int_equal(engine_llm.open(&f->engine, &config, NULL), 0);
    ask_many(f, QUESTIONS);
    assert_int_equal(noted[0].count + noted[1].count, QUESTIONS);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        assert_true(noted[i].count > 0);
        if (noted[i].count > 1) {
            assert_true(noted[i].at[1] >= noted[i].at[0] + FIRST_MS);
        }
    }
    // The stubs of this test end before those of its fixture.
    engine_llm.close(f->engine);
    f->config.count = 1;
    open_engine(f);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        stub_stop(stub[i]);
    }
}

// The questions of a set whose endpoint is not asked: only what is admitted counts.
struct questions {
    uv_loop_t loop;
    struct llm llm;
    struct llm_question question[3];
};

static void begin_with(struct questions *q, size_t question, const char *beginning)
{
    q->question[question].llm = &q->llm;
    q->question[question].beginning = digest_of(beginning, strlen(beginning));
}

static void set_of(struct questions *q)
{
    memset(q, 0, sizeof(*q));
    uv_loop_init(&q->loop);
    q->llm.timer.loop = &q->loop;
    q->llm.config.deadline_ms = 30000;
    for (size_t i = 0; i < 3; i++) {
        begin_with(q, i, "the same");
    }
}

static bool may_ask(const struct questions *q, size_t question)
{
    return llm_ahead_admits(&q->question[question], 0);
}

static void what_comes_of_it_decides(void **state)
{
    static struct questions q;

    (void)state;
    for (size_t refused = 0; refused < 2; refused++) {
        set_of(&q);
        assert_true(may_ask(&q, 0));
        llm_ahead_begin(&q.question[0], 0);
        assert_true(may_ask(&q, 0)); // it may be asked again itself
        assert_false(may_ask(&q, 1));
        assert_true(llm_ahead_admits(&q.question[1], 1)); // another endpoint has its own
        llm_ahead_end(&q.question[1], 0, false);          // that was not the one
        assert_false(may_ask(&q, 1));
        llm_ahead_end(&q.question[0], 0, refused > 0);
        assert_true(may_ask(&q, 1));
        llm_ahead_begin(&q.question[1], 0);
        assert_int_equal(may_ask(&q, 2), refused == 0); // the next one goes ahead
        assert_int_equal(uv_loop_close(&q.loop), 0);
    }
}

static void nobody_waits_for_long_nor_for_another_beginning(void **state)
{
    static struct questions q;

    (void)state;
    set_of(&q);
    begin_with(&q, 2, "another");
    llm_ahead_begin(&q.question[0], 0);
    assert_false(may_ask(&q, 1));
    assert_true(may_ask(&q, 2));
    q.llm.beginning[0][0].since_ms = uv_now(&q.loop);
    assert_false(may_ask(&q, 1));
    q.llm.config.deadline_ms = 0; // of which no part is left to wait
    assert_true(may_ask(&q, 1));
    assert_int_equal(uv_loop_close(&q.loop), 0);
    // Only so many beginnings are remembered; one that is waited for stays.
    set_of(&q);
    llm_ahead_begin(&q.question[0], 0);
    for (size_t i = 0; i < 3 * LLM_BEGINNINGS; i++) {
        char text[32];

        (void)snprintf(text, sizeof(text), "beginning %zu", i);
        begin_with(&q, 1, text);
        llm_ahead_begin(&q.question[1], 0);
        llm_ahead_end(&q.question[1], 0, false);
    }
    assert_false(may_ask(&q, 2));
    llm_ahead_end(&q.question[0], 0, false);
    assert_true(may_ask(&q, 2));
    assert_int_equal(uv_loop_close(&q.loop), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_others_wait_for_the_first_answer),
        TEST(each_endpoint_is_asked_one_ahead),
        cmocka_unit_test(what_comes_of_it_decides),
        cmocka_unit_test(nobody_waits_for_long_nor_for_another_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
