// The llm engine through its table of operations: one question that goes ahead of the others,
// models that cannot say, and the second question, against the best so far.
#include "tests/worker/llm/llm_fixture.h"

#define FORECAST(more)                                                                             \
    "{\\\"analysis\\\":\\\"as bin "                                                                \
    "C\\\",\\\"bin\\\":\\\"G\\\",\\\"p\\\":{\\\"G\\\":1},\\\"p_correct\\\":0.5" more "}"

// An endpoint that notes which candidates it is asked about.
struct counted {
    struct fixture *f;
    size_t sources[16]; // the digit behind "kernel#", in the order of asking
    size_t count;
};

static void note(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    struct counted *counted = owner;
    const char *at = strstr(request->body, "kernel#");

    if (at && counted->count < ARRAY_LEN(counted->sources)) {
        counted->sources[counted->count++] = (size_t)(at[7] - '0');
    }
    answer(counted->f, request, reply);
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

// The first answer is unusable, so that the question ahead is asked again: the others must wait for
// that, too.
static void one_question_is_asked_ahead_of_the_others(void **state)
{
    struct fixture *f = *state;
    struct counted counted = {.f = f};

    f->content = FORECAST("");
    f->unusable = 1;
    engine_llm.close(f->engine);
    stub_stop(f->stub);
    f->stub = stub_start(&f->loop, note, &counted);
    open_engine(f);
    ask_many(f, 6);
    assert_int_equal(counted.count, 7);
    assert_int_equal(counted.sources[0], 0);
    assert_int_equal(counted.sources[1], 0);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(f->reply.forecasts[i].id, i + 1);
        assert_int_equal(f->reply.forecasts[i].bins_count, BIN_COUNT);
    }
    // What is known needs no asking, and warms nothing: the next one that is not goes ahead.
    counted.count = 0;
    f->unusable = 1;
    ask_many(f, 9);
    assert_int_equal(counted.count, 4);
    assert_int_equal(counted.sources[0], 6);
    assert_int_equal(counted.sources[1], 6);
    // Two are asked at once; without a usable answer there is a reason.
    counted.count = 0;
    f->unusable = SIZE_MAX;
    struct forecast_request two = request_of("kernel#a", "kernel#b");
    engine_llm.forecast(f->engine, &two, on_forecast, f);
    wait(f);
    assert_true(counted.sources[0] != counted.sources[1]);
    assert_non_null(f->reply.forecasts[0].reason);
}

static void a_model_that_cannot_say_is_not_asked_twice(void **state)
{
    struct fixture *f = *state;

    f->content = "{\\\"analysis\\\":\\\"?\\\",\\\"bin\\\":\\\"X\\\"}";
    ask(f, "one", "two");
    for (size_t i = 0; i < CANDIDATES; i++) {
        assert_true(f->reply.forecasts[i].confidence == 0);
        assert_int_equal(f->reply.forecasts[i].bins_count, 0);
        assert_null(f->reply.forecasts[i].raw);
        assert_string_equal(f->reply.forecasts[i].reason, "the model says that it cannot say");
    }
    assert_int_equal(stub_requests(f->stub), 2); // usable answers: no other way is tried
    ask(f, "one", "two");
    assert_string_equal(f->reply.forecasts[0].reason, "the model says that it cannot say");
    assert_int_equal(stub_requests(f->stub), 2); // and they are kept
}

static void the_second_answer_says_whether_it_improves(void **state)
{
    static const struct {
        const char *content;
        double p; // raw P(improves), of a margin of 0
    } row[] = {
        // The first answer alone: bin G is S from 1.25 to 1.6, above the incumbent's 1.
        {FORECAST(""), 0.5},
        {FORECAST(",\\\"best_bin\\\":\\\"Q\\\",\\\"q\\\":{\\\"Q\\\":1}"), 0},
        {FORECAST(",\\\"best_bin\\\":\\\"T\\\",\\\"q\\\":{\\\"Q\\\":0.5,\\\"T\\\":0.5}"), 0.25},
        {FORECAST(",\\\"q\\\":{\\\"W\\\":2}"), 0.5},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char *first = xasprintf("first %zu", i), *second = xasprintf("second %zu", i);

        f->content = row[i].content;
        for (size_t again = 0; again < 2; again++) { // from the cache the second time
            ask(f, first, second);
            assert_non_null(f->reply.forecasts[0].raw);
            assert_true(fabs(f->reply.forecasts[0].raw->p_improves - row[i].p) < 1e-9);
        }
        free(first);
        free(second);
    }
    assert_int_equal(stub_requests(f->stub), 2 * ARRAY_LEN(row));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_question_is_asked_ahead_of_the_others),
        TEST(a_model_that_cannot_say_is_not_asked_twice),
        TEST(the_second_answer_says_whether_it_improves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
