// kcast-worker --try: what is printed of each endpoint, for every engine.
#include "worker/try.h"

#include "tests/worker/llm/llm_fixture.h"

struct rig {
    uv_loop_t loop;
    char *dir;
    struct stub *stub;
    bool refuses; // the stub answers 402
};

static void reply_of(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    const struct rig *rig = owner;

    *reply = (struct stub_reply){
        .status = 200,
        .body =
            "{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"G\\\",\\\"p\\\":{\\\"F\\\":"
            "0.2,\\\"G\\\":0.8},\\\"p_correct\\\":0.9}\"},\"finish_reason\":\"stop\"}],\"usage\":{"
            "\"prompt_tokens\":1000,\"completion_tokens\":20,\"prompt_tokens_details\":{"
            "\"cached_tokens\":600}}}"};
    if (rig->refuses) {
        *reply = (struct stub_reply){.status = 402,
                                     .body = "{\"error\":{\"message\":\"Insufficient Balance\"}}"};
    } else if (strstr(request->body, "logprobs")) {
        *reply = (struct stub_reply){
            .status = 403, .body = "{\"error\":{\"message\":\"No logprobs for this model\"}}"};
    }
}

static int rig_up(void **state)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    assert_int_equal(file_make_temp_dir(&rig->dir, "kcast-try", NULL), 0);
    uv_loop_init(&rig->loop);
    rig->stub = stub_start(&rig->loop, reply_of, rig);
    *state = rig;
    return 0;
}

static int rig_down(void **state)
{
    struct rig *rig = *state;

    stub_stop(rig->stub);
    while (uv_run(&rig->loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    assert_int_equal(file_remove_tree(rig->dir, NULL), 0);
    free(rig->dir);
    free(rig);
    return 0;
}

// Tries an engine with these endpoints. Returns what was printed, which the caller frees.
static char *run_trial(struct rig *rig, const char *name, size_t count, int code, struct err *err)
{
    struct endpoint_config endpoint[2] = {{.name = "near",
                                           .url = stub_url(rig->stub),
                                           .model = "tester",
                                           .weight = 1,
                                           .in_flight = 4,
                                           .price_input = 1,
                                           .price_output = 10,
                                           .temperature = -1},
                                          {.name = "nowhere",
                                           .url = "http://127.0.0.1:1/v1",
                                           .model = "nobody",
                                           .weight = 1,
                                           .in_flight = 4,
                                           .temperature = -1}};
    struct llm_config llm = {.endpoints = endpoint,
                             .count = count,
                             .samples = 1,
                             .max_tokens = 500,
                             .temperature = 0.5,
                             .deadline_ms = 60000};
    const struct engine_config config = {
        .loop = &rig->loop, .state_dir = rig->dir, .llm = &llm, .threads = 1};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_int_equal(worker_try(engine_find(name), &config, out, err), code);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("'%s' is not in: %s", part, text);
    }
}

static void every_endpoint_is_asked_a_real_question(void **state)
{
    static const char *const engines[] = {"llm", "both"};
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        struct err err = ERR_INIT;
        char *text = run_trial(rig, engines[i], 2, ERR_UNREACHABLE, &err);
        assert_string_equal(err.text, "1 of 2 endpoints gave no forecast");
        assert_has(text, "endpoint near: tester, chat, http://127.0.0.1:");
        // What was learnt by the first trial is known to the second.
        assert_has(text, i == 0 ? "json_schema without logprobs; 2 requests"
                                : "json_schema without logprobs; 1 requests");
        assert_has(text, "1000 in, of which it had kept 600; 20 out");
        assert_has(text, "price     0.0006"); // what it had kept has no price here
        assert_has(text, "forecast  about ");
        assert_has(text, "endpoint nowhere: nobody, chat, http://127.0.0.1:1/v1");
        assert_has(text, "forecast  none: no endpoint can answer now: nowhere rests");
        assert_has(text, "cannot be reached");
        free(text);
    }
    // Nobody gets an old answer.
    assert_int_equal(stub_requests(rig->stub), 3);
}

static void an_endpoint_s_own_words_are_printed(void **state)
{
    struct rig *rig = *state;

    rig->refuses = true;
    struct err err = ERR_INIT;
    char *text = run_trial(rig, "llm", 1, ERR_UNREACHABLE, &err);
    assert_has(text, "its account has no money or quota left (status 402): Insufficient Balance");
    free(text);
}

static void on_observed(void *owner, const struct err *error, const void *reply)
{
    assert_null(error);
    assert_non_null(reply);
    uv_stop(owner);
}

// Tells the engine static of candidates that are the faster the larger x is, and closes it.
static void tell_static(const struct rig *rig, const char *problem, size_t count)
{
    const struct engine_ops *ops = engine_find("static");
    uv_loop_t loop; // the rig's is kept alive by its stub
    const struct engine_config config = {.loop = &loop, .state_dir = rig->dir, .threads = 1};
    struct observe observe;
    void *engine;

    message_init(&observe_message, &observe);
    observe.problem = xstrdup(problem);
    observe.device_class = xstrdup("cpu x");
    observe.outcomes = xcalloc(count, sizeof(*observe.outcomes));
    observe.outcomes_count = count;
    for (size_t i = 0; i < count; i++) {
        struct outcome *outcome = &observe.outcomes[i];

        message_init(&outcome_message, outcome);
        outcome->candidate = xcalloc(1, sizeof(*outcome->candidate));
        message_init(&candidate_facts_message, outcome->candidate);
        outcome->candidate->features = xcalloc(1, sizeof(struct fact));
        outcome->candidate->features_count = 1;
        outcome->candidate->features[0] =
            (struct fact){.name = xstrdup("x"), .value = (double)(i % 10)};
        outcome->verdict = i + 1 < count ? VERDICT_FASTER : VERDICT_WRONG;
        outcome->log2 = i + 1 < count ? 0.3 * (double)(i % 10) : NAN;
        outcome->key = xasprintf("%s %zu", problem, i);
    }
    uv_loop_init(&loop);
    assert_int_equal(ops->open(&engine, &config, NULL), 0);
    ops->observe(engine, &observe, on_observed, &loop);
    (void)uv_run(&loop, UV_RUN_DEFAULT); // until uv_stop
    ops->close(engine);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void an_engine_without_endpoints_is_asked_about_what_it_knows(void **state)
{
    struct rig *rig = *state;
    struct err err = ERR_INIT;

    tell_static(rig, "small", 12);
    tell_static(rig, "large", 60);
    char *text = run_trial(rig, "static", 1, 0, &err);
    assert_has(text, "engine static: ");
    assert_has(text, "  asked     about the newest of 60 candidates of large on cpu x\n");
    assert_has(text, "  time      ");
    assert_has(text, "  forecast  about ");
    assert_has(text, "  measured  wrong\n");
    assert_int_equal(stub_requests(rig->stub), 0);
    free(text);
}

static void an_engine_that_knows_nothing_is_not_asked(void **state)
{
    struct rig *rig = *state;
    struct err err = ERR_INIT;
    char *text = run_trial(rig, "static", 1, 0, &err);

    assert_has(text, "  forecast  none: it was told of no outcomes in this state, so that there is "
                     "no problem that it could be asked about; make a search with it first\n");
    free(text);
}

#define RIGGED(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIGGED(every_endpoint_is_asked_a_real_question),
        RIGGED(an_endpoint_s_own_words_are_printed),
        RIGGED(an_engine_without_endpoints_is_asked_about_what_it_knows),
        RIGGED(an_engine_that_knows_nothing_is_not_asked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
