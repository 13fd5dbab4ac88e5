// One question about several candidates: what is asked, in which order they are shown, what comes
// of the answer, what it costs, and that it is kept.
#include "tests/worker/llm/llm_fixture.h"

#define RANKED 5

struct rig {
    struct fixture *f;
    struct rank_reply reply;
    const char *ranking; // the value of the field in the answer
};

// Answers a ranking with rig->ranking, and what is refused as the fixture does.
static void rank_answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    static char body[8192];
    struct rig *rig = owner;

    answer(rig->f, request, reply);
    if (reply->status == 200) {
        snprintf(body, sizeof(body),
                 "{\"choices\":[{\"message\":{\"content\":\"%s\"}}],\"usage\":{\"prompt_tokens\":"
                 "1000,\"completion_tokens\":10}}",
                 rig->ranking);
        reply->body = body;
    }
}

static int rig_up(void **state)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    assert_int_equal(set_up((void **)&rig->f), 0);
    engine_llm.close(rig->f->engine);
    stub_stop(rig->f->stub);
    rig->f->stub = stub_start(&rig->f->loop, rank_answer, rig);
    open_engine(rig->f);
    message_init(&rank_reply_message, &rig->reply);
    *state = rig;
    return 0;
}

static int rig_down(void **state)
{
    struct rig *rig = *state;

    message_clear(&rank_reply_message, &rig->reply);
    assert_int_equal(tear_down((void **)&rig->f), 0);
    free(rig);
    return 0;
}

static void on_ranked(void *owner, const struct err *error, const void *reply)
{
    struct rig *rig = owner;

    assert_null(error);
    rig->f->done = true;
    uv_stop(&rig->f->loop);
    message_clear(&rank_reply_message, &rig->reply);
    message_copy(&rank_reply_message, &rig->reply, reply);
}

// Candidates 11 to 15, whose sources say so.
static void rank(struct rig *rig, size_t count, uint64_t seed)
{
    struct rank_request request;

    message_init(&rank_request_message, &request);
    request.problem = xstrdup("axpy");
    request.device_class = xstrdup("H200");
    request.search = xstrdup("s1");
    request.take = 2;
    request.seed = seed;
    request.context = xcalloc(1, sizeof(*request.context));
    message_init(&search_context_message, request.context);
    request.context->baseline = bytes_of("the baseline");
    request.candidates = xcalloc(count + 1, sizeof(*request.candidates));
    request.candidates_count = count;
    for (size_t i = 0; i < count; i++) {
        char *source = xasprintf("kernel#%zu", i);

        message_init(&candidate_facts_message, &request.candidates[i]);
        request.candidates[i].id = 11 + i;
        request.candidates[i].source = bytes_of(source);
        free(source);
    }
    engine_llm.rank(rig->f->engine, &request, on_ranked, rig);
    wait(rig->f);
}

// The candidate that was shown with this number, by the body of the request.
static uint64_t shown_as(const struct rig *rig, size_t number)
{
    char label[32];

    (void)snprintf(label, sizeof(label), "Candidate %zu:", number);
    const char *at = strstr(rig->f->last_body, label);
    assert_non_null(at);
    at = strstr(at, "kernel#");
    assert_non_null(at);
    return 11 + (uint64_t)(at[7] - '0');
}

static void the_order_is_that_of_the_answer(void **state)
{
    struct rig *rig = *state;
    const struct rank_reply *reply = &rig->reply;

    rig->ranking =
        "{\\\"analysis\\\":\\\"a\\\",\\\"ranking\\\":[{\\\"candidate\\\":4,\\\"p\\\":0.6}"
        ",{\\\"candidate\\\":2,\\\"p\\\":0.3}]}";
    rank(rig, RANKED, 7);
    assert_null(reply->reason);
    assert_int_equal(reply->order_count, RANKED);
    assert_int_equal(reply->p_count, RANKED);
    assert_int_equal(reply->named, 2);
    assert_int_equal(reply->order[0], shown_as(rig, 4));
    assert_int_equal(reply->order[1], shown_as(rig, 2));
    assert_int_equal(reply->order[2], shown_as(rig, 1)); // the others as they were shown
    assert_true(reply->p[0] == 0.6 && reply->p[1] == 0.3 && isnan(reply->p[2]));
    assert_string_equal(reply->model, "tester");
    assert_int_equal(reply->input_tokens, 1000);
    assert_true(fabs(reply->cost - 0.0011) < 1e-9);
    assert_false(reply->cached);
    // Of the endpoint the object was demanded, and no log-probabilities.
    assert_non_null(strstr(rig->f->last_body, "\"name\":\"ranking\""));
    assert_null(strstr(rig->f->last_body, "logprobs"));
    // The same request is answered without asking.
    uint64_t first = reply->order[0];
    rank(rig, RANKED, 7);
    assert_int_equal(stub_requests(rig->f->stub), 1);
    assert_true(reply->cached);
    assert_int_equal(reply->order[0], first);
    assert_int_equal(reply->input_tokens, 0);
}

static void the_order_of_showing_follows_from_the_seed(void **state)
{
    struct rig *rig = *state;
    bool differs = false;
    uint64_t first[RANKED];
    size_t counts[RANKED] = {0};

    rig->ranking = "{\\\"ranking\\\":[1]}";
    for (uint64_t seed = 0; seed < 20; seed++) {
        rank(rig, RANKED, seed);
        if (rig->reply.cached) { // an order that was drawn before
            continue;
        }
        for (size_t i = 0; i < RANKED; i++) {
            uint64_t shown = shown_as(rig, i + 1);

            differs |= seed > 0 && shown != first[i];
            first[i] = seed == 0 ? shown : first[i];
        }
        assert_int_equal(rig->reply.order[0], shown_as(rig, 1));
        counts[shown_as(rig, 1) - 11]++;
    }
    assert_true(differs);
    for (size_t i = 0; i < RANKED; i++) {
        assert_true(counts[i] > 0); // each comes first some time: 20 draws of 5
    }
}

static void what_cannot_be_used_is_asked_again_and_then_has_a_reason(void **state)
{
    struct rig *rig = *state;

    rig->ranking = "I like all of them.";
    rank(rig, RANKED, 1);
    assert_int_equal(rig->reply.order_count, 0);
    assert_non_null(strstr(rig->reply.reason, "the answer holds no ranking"));
    assert_int_equal(stub_requests(rig->f->stub), 3);
    assert_int_equal(rig->reply.input_tokens, 3000); // of every attempt
    rig->ranking = "{\\\"ranking\\\":[77]}";
    rank(rig, RANKED, 2);
    assert_non_null(strstr(rig->reply.reason, "names none of the candidates 1 to 5"));
    size_t before = stub_requests(rig->f->stub);
    rank(rig, 1, 3);
    assert_string_equal(rig->reply.reason, "2 to 64 candidates can be ranked");
    assert_int_equal(stub_requests(rig->f->stub), before);
}

static void a_ranking_is_asked_in_the_way_that_forecasts_have_found(void **state)
{
    struct rig *rig = *state;

    rig->f->refuse = "response_format";
    rig->ranking = "{\\\"bin\\\":\\\"G\\\",\\\"p\\\":{\\\"G\\\":1}}";
    ask(rig->f, "one", "two");
    assert_string_equal(rig->f->reply.forecasts[0].rung, "forced-tool");
    size_t before = stub_requests(rig->f->stub);
    rig->ranking = "{\\\"ranking\\\":[2]}";
    rank(rig, RANKED, 1);
    assert_int_equal(rig->reply.order_count, RANKED);
    assert_int_equal(stub_requests(rig->f->stub), before + 1);
    assert_non_null(strstr(rig->f->last_body, "submit_ranking"));
}

static void a_ranking_is_paid_by_its_search(void **state)
{
    struct rig *rig = *state;

    engine_llm.close(rig->f->engine);
    rig->f->config.limits.search.tokens = 1500;
    open_engine(rig->f);
    rig->ranking = "{\\\"ranking\\\":[2]}";
    rank(rig, RANKED, 1);
    assert_int_equal(rig->reply.order_count, RANKED);
    rank(rig, RANKED, 2);
    rank(rig, RANKED, 3);
    assert_int_equal(rig->reply.order_count, 0);
    assert_non_null(strstr(rig->reply.reason, "used up its 1500 tokens"));
}

#define RIGGED(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIGGED(the_order_is_that_of_the_answer),
        RIGGED(the_order_of_showing_follows_from_the_seed),
        RIGGED(what_cannot_be_used_is_asked_again_and_then_has_a_reason),
        RIGGED(a_ranking_is_asked_in_the_way_that_forecasts_have_found),
        RIGGED(a_ranking_is_paid_by_its_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
