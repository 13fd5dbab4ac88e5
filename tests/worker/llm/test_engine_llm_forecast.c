// The llm engine through its table of operations: models that cannot say, and the second question,
// against the best so far.
#include "tests/worker/llm/llm_fixture.h"

#define FORECAST(more)                                                                             \
    "{\\\"analysis\\\":\\\"as bin "                                                                \
    "C\\\",\\\"bin\\\":\\\"G\\\",\\\"p\\\":{\\\"G\\\":1},\\\"p_correct\\\":0.5" more "}"

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
        TEST(a_model_that_cannot_say_is_not_asked_twice),
        TEST(the_second_answer_says_whether_it_improves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
