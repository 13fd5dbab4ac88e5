// Every provider's endpoint, as strict as the real one (provider_mocks.h): the first question needs
// four requests at most, the next one a single one, also after a restart; and of several providers
// in one worker, whatever becomes of their answers, none ever sees another's key.
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
};

static void reply_of(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    const struct rig *rig = owner;

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

// ---- several providers in one worker ----

#define PROVIDERS 4
#define KEYED_QUESTIONS 8

struct shared;

// One of several endpoints, each with a key of its own but for the last one, which has none.
struct provider {
    struct shared *shared;
    struct stub *stub;
    size_t number, own, foreign; // requests; of these with its key, and with another one's
};

struct shared {
    struct provider provider[PROVIDERS];
    size_t trouble; // how all but the last two answer, in the order of troubles[]
    uv_loop_t loop;
    size_t open;
};

static const char *const keys[PROVIDERS] = {"key-of-the-first", "key-of-the-second",
                                            "key-of-the-third", NULL};

// What makes a question go elsewhere, and places to which a key might follow it.
enum trouble {
    TROUBLE_NONE,
    TROUBLE_MONEY,
    TROUBLE_KEY,
    TROUBLE_PASSES,
    TROUBLE_RESET,
    TROUBLE_ELSEWHERE,
    TROUBLES
};

static void provider_reply(void *owner, const struct stub_request *request,
                           struct stub_reply *reply)
{
    static char location[256];
    struct provider *provider = owner;
    const struct shared *shared = provider->shared;
    bool troubled = provider - shared->provider < 2;

    provider->number++;
    for (size_t i = 0; i < PROVIDERS; i++) {
        bool there = keys[i] && (strstr(request->head, keys[i]) || strstr(request->body, keys[i]));

        provider->own += there && (size_t)(provider - shared->provider) == i;
        provider->foreign += there && (size_t)(provider - shared->provider) != i;
    }
    *reply = (struct stub_reply){
        .status = 200,
        .body = "{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"G\\\",\\\"p\\\":"
                "{\\\"G\\\":1},\\\"p_correct\\\":0.9}\"}}],"
                "\"content\":[{\"type\":\"tool_use\",\"name\":\"submit_forecast\",\"input\":"
                "{\"bin\":\"G\",\"p\":{\"G\":1},\"p_correct\":0.9}}]}"};
    switch (troubled ? shared->trouble : TROUBLE_NONE) {
    case TROUBLE_MONEY:
        *reply = (struct stub_reply){.status = 402, .body = "{\"error\":{\"message\":\"quota\"}}"};
        break;
    case TROUBLE_KEY:
        *reply = (struct stub_reply){.status = 401, .body = "{\"error\":{\"message\":\"key\"}}"};
        break;
    case TROUBLE_PASSES:
        *reply = (struct stub_reply){.status = provider->number % 2 == 1 ? 503 : 429,
                                     .headers = "Retry-After-Ms: 1\r\n",
                                     .body = "{}"};
        break;
    case TROUBLE_RESET:
        *reply = (struct stub_reply){.reset = true};
        break;
    case TROUBLE_ELSEWHERE: // to the last one, which has no key
        (void)snprintf(location, sizeof(location), "Location: %s/chat/completions\r\n",
                       stub_url(shared->provider[PROVIDERS - 1].stub));
        *reply = (struct stub_reply){.status = 307, .headers = location, .body = "{}"};
        break;
    default:
        break;
    }
}

static void on_shared_answer(void *owner, const struct llm_answer *given)
{
    struct shared *shared = owner;

    (void)given;
    if (--shared->open == 0) {
        uv_stop(&shared->loop);
    }
}

// All questions at once, to any of the endpoints.
static void ask_all(struct shared *shared, struct llm *llm, size_t round)
{
    struct forecast_request request[KEYED_QUESTIONS];

    shared->open = KEYED_QUESTIONS;
    for (size_t i = 0; i < KEYED_QUESTIONS; i++) {
        char *source = xasprintf("kernel %zu of round %zu", i, round);

        request[i] = request_of(source, "beside it");
        llm_forecast(llm, &request[i], 0, on_shared_answer, shared);
        free(source);
    }
    while (shared->open > 0) {
        (void)uv_run(&shared->loop, UV_RUN_DEFAULT); // until uv_stop
    }
    for (size_t i = 0; i < KEYED_QUESTIONS; i++) {
        message_clear(&forecast_request_message, &request[i]);
    }
}

static void check_keys(enum trouble trouble)
{
    static struct shared shared;
    struct endpoint_config endpoint[PROVIDERS];
    struct llm_config config = {.endpoints = endpoint,
                                .count = PROVIDERS,
                                .samples = 1,
                                .max_tokens = 2048,
                                .temperature = 0.5,
                                .deadline_ms = 60000};
    struct llm *llm;
    char *dir;

    shared = (struct shared){.trouble = trouble};
    assert_int_equal(file_make_temp_dir(&dir, "kcast-keys", NULL), 0);
    uv_loop_init(&shared.loop);
    for (size_t i = 0; i < PROVIDERS; i++) {
        shared.provider[i].shared = &shared;
        shared.provider[i].stub = stub_start(&shared.loop, provider_reply, &shared.provider[i]);
        endpoint[i] = (struct endpoint_config){.url = stub_url(shared.provider[i].stub),
                                               .model = "tester",
                                               .key = keys[i],
                                               .header = i == 2 ? "X-Own-Key"
                                                                : NULL, // three ways to carry a key
                                               .form = i == 1 ? API_ANTHROPIC : API_CHAT,
                                               .weight = 1,
                                               .in_flight = 2,
                                               .temperature = -1};
    }
    assert_int_equal(llm_create(&llm, &shared.loop, &config, dir, NULL), 0);
    for (size_t round = 0; round < 3; round++) {
        ask_all(&shared, llm, round);
    }
    llm_close(llm);
    for (size_t i = 0; i < PROVIDERS; i++) {
        struct provider *provider = &shared.provider[i];

        // Each was asked, always with its own key, and never with another one's.
        if (provider->number == 0 || provider->foreign > 0 ||
            provider->own != (keys[i] ? provider->number : 0)) {
            fail_msg("trouble %d, endpoint %zu: %zu requests, %zu with its key, %zu with another's",
                     (int)trouble, i, provider->number, provider->own, provider->foreign);
        }
        stub_stop(provider->stub);
    }
    while (uv_run(&shared.loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&shared.loop), 0);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
    free(dir);
}

static void no_provider_sees_another_s_key(void **state)
{
    (void)state;
    for (int trouble = 0; trouble < TROUBLES; trouble++) {
        check_keys((enum trouble)trouble);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_question_needs_four_requests_at_most),
        cmocka_unit_test(no_provider_sees_another_s_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
