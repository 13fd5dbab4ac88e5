// Every provider's endpoint, as strict as the real one (provider_mocks.h): the first question needs
// four requests at most, the next one a single one, also after a restart; and of several providers
// in one worker none ever sees another's key.
#include "tests/worker/llm/llm_fixture.h"
#include "tests/worker/llm/provider_mocks.h"

struct rig {
    uv_loop_t loop;
    char *dir;
    struct stub *stub;
    const struct provider_mock *mock;
    struct llm *llm;
    bool done;
    char *reason, *way; // of the last answer; NULL: none
    double bin;         // probability of the likeliest bin
    uint64_t requests, input, cached;
    size_t foreign; // requests with the key of another endpoint
};

static void reply_of(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    struct rig *rig = owner;

    rig->foreign += strstr(request->head, "secret-") && !strstr(request->head, PROVIDER_KEY);
    provider_mock_reply(rig->mock, request, reply);
}

// The url of a server without the path that the stub's has.
static char *host_of(const struct stub *stub, const char *path)
{
    return xasprintf("%.*s%s", (int)(strlen(stub_url(stub)) - strlen("/v1")), stub_url(stub), path);
}

static void open_llm(struct rig *rig)
{
    char *url = host_of(rig->stub, rig->mock->path);
    json_t *extra = rig->mock->extra ? json_loads(rig->mock->extra, 0, NULL) : NULL;
    struct endpoint_config endpoint = {
        .name = rig->mock->name,
        .url = url,
        .model = "tester",
        .key = PROVIDER_KEY,
        .api_version = rig->mock->form == API_AZURE ? "2024-10-21" : NULL,
        .effort = strcmp(rig->mock->name, "openai-effort") == 0 ? "low" : NULL,
        .extra = extra,
        .form = rig->mock->form,
        .weight = 1,
        .in_flight = 16,
        .temperature = -1,
    };
    const struct llm_config config = {.endpoints = &endpoint,
                                      .count = 1,
                                      .samples = 1,
                                      .max_tokens = 2048,
                                      .temperature = 0.5,
                                      .deadline_ms = 60000};

    assert_int_equal(llm_create(&rig->llm, &rig->loop, &config, rig->dir, NULL), 0);
    json_decref(extra);
    free(url);
}

static void on_answered(void *owner, const struct llm_answer *given)
{
    struct rig *rig = owner;

    rig->done = true;
    uv_stop(&rig->loop);
    free(rig->reason);
    free(rig->way);
    rig->reason = given->reason ? xstrdup(given->reason) : NULL;
    rig->way = given->way ? xstrdup(given->way) : NULL;
    rig->bin = given->reason ? 0 : given->bins[6];
    rig->requests = given->requests;
    rig->input = given->input_tokens;
    rig->cached = given->cached_tokens;
}

static void ask_once(struct rig *rig, const char *source)
{
    struct forecast_request request = request_of(source, "beside it");

    rig->done = false;
    llm_forecast(rig->llm, &request, 0, on_answered, rig);
    while (!rig->done) {
        (void)uv_run(&rig->loop, UV_RUN_DEFAULT); // until uv_stop
    }
    message_clear(&forecast_request_message, &request);
}

static void check_mock(const struct provider_mock *mock)
{
    struct rig rig = {.mock = mock};

    assert_int_equal(file_make_temp_dir(&rig.dir, "kcast-provider", NULL), 0);
    uv_loop_init(&rig.loop);
    rig.stub = stub_start(&rig.loop, reply_of, &rig);
    open_llm(&rig);
    ask_once(&rig, "first");
    if (rig.reason || stub_requests(rig.stub) > 4 || !(fabs(rig.bin - 0.8) < 1e-9)) {
        fail_msg("%s: %zu requests, %s, %s", mock->name, stub_requests(rig.stub),
                 rig.reason ? rig.reason : "answered", rig.way);
    }
    if (mock->way) {
        assert_string_equal(rig.way, mock->way);
    }
    assert_true(rig.input >= 1000); // what the prompt cache had is a part of it
    if (mock->form == API_ANTHROPIC) {
        assert_int_equal(rig.cached, 700);
    }
    printf("%-24s %zu requests, %s\n", mock->name, stub_requests(rig.stub), rig.way);
    size_t before = stub_requests(rig.stub);
    ask_once(&rig, "second");
    assert_null(rig.reason);
    assert_int_equal(stub_requests(rig.stub), before + 1);
    // A restart knows how to ask.
    llm_close(rig.llm);
    open_llm(&rig);
    ask_once(&rig, "third");
    assert_null(rig.reason);
    assert_int_equal(stub_requests(rig.stub), before + 2);
    llm_close(rig.llm);
    stub_stop(rig.stub);
    while (uv_run(&rig.loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&rig.loop), 0);
    assert_int_equal(rig.foreign, 0);
    assert_int_equal(file_remove_tree(rig.dir, NULL), 0);
    free(rig.dir);
    free(rig.reason);
    free(rig.way);
}

static void the_first_question_needs_four_requests_at_most(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(provider_mocks); i++) {
        check_mock(&provider_mocks[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_question_needs_four_requests_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
