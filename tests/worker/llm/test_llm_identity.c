// Who answers: each endpoint is a forecaster of its own, which is another one when anything changes
// that changes its answers, and whose answers are kept as its own.
#include "tests/worker/llm/llm_fixture.h"
#include "worker/llm/llm_state.h"

#define ENDPOINTS 2

struct rig {
    char *dir;
    uv_loop_t loop;
    struct stub *stub[ENDPOINTS];
    struct endpoint_config endpoint[ENDPOINTS];
    struct llm_config config;
    struct llm *llm;
    bool done;
    char *forecaster, *reason;
    uint64_t requests;
};

static void reply_of(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    (void)owner;
    (void)request;
    *reply = (struct stub_reply){
        .status = 200,
        .body = "{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"G\\\",\\\"p\\\":"
                "{\\\"F\\\":0.2,\\\"G\\\":0.8},\\\"p_correct\\\":0.9}\"}}]}"};
}

static void open_llm(struct rig *rig)
{
    rig->config.endpoints = rig->endpoint;
    assert_int_equal(llm_create(&rig->llm, &rig->loop, &rig->config, rig->dir, NULL), 0);
}

static int rig_up(void **state)
{
    static const char *const name[ENDPOINTS] = {"one", "two"};
    struct rig *rig = xcalloc(1, sizeof(*rig));

    assert_int_equal(file_make_temp_dir(&rig->dir, "kcast-identity", NULL), 0);
    uv_loop_init(&rig->loop);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        rig->stub[i] = stub_start(&rig->loop, reply_of, rig);
        rig->endpoint[i] = (struct endpoint_config){.name = name[i],
                                                    .url = stub_url(rig->stub[i]),
                                                    .model = "tester",
                                                    .weight = 1,
                                                    .in_flight = 16,
                                                    .temperature = -1};
    }
    rig->config = (struct llm_config){
        .count = 1, .samples = 1, .max_tokens = 100, .temperature = 0.5, .deadline_ms = 60000};
    open_llm(rig);
    *state = rig;
    return 0;
}

static int rig_down(void **state)
{
    struct rig *rig = *state;

    llm_close(rig->llm);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        stub_stop(rig->stub[i]);
    }
    while (uv_run(&rig->loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    assert_int_equal(file_remove_tree(rig->dir, NULL), 0);
    free(rig->dir);
    free(rig->forecaster);
    free(rig->reason);
    free(rig);
    return 0;
}

static void reopen(struct rig *rig)
{
    llm_close(rig->llm);
    open_llm(rig);
}

static void on_answered(void *owner, const struct llm_answer *given)
{
    struct rig *rig = owner;

    rig->done = true;
    uv_stop(&rig->loop);
    free(rig->forecaster);
    free(rig->reason);
    rig->forecaster = given->forecaster ? xstrdup(given->forecaster) : NULL;
    rig->reason = given->reason ? xstrdup(given->reason) : NULL;
    rig->requests = given->requests;
}

// endpoint: the number of the one to ask; 0: any.
static void ask_one(struct rig *rig, const char *source, uint64_t endpoint)
{
    struct forecast_request request = request_of(source, "beside it");

    request.endpoint = endpoint;
    rig->done = false;
    llm_forecast(rig->llm, &request, 0, on_answered, rig);
    while (!rig->done) {
        (void)uv_run(&rig->loop, UV_RUN_DEFAULT); // until uv_stop
    }
    message_clear(&forecast_request_message, &request);
    if (rig->reason) {
        fail_msg("%s", rig->reason);
    }
}

// The name of the first endpoint after a change.
static char *name_with(struct rig *rig, const struct endpoint_config *endpoint,
                       const struct llm_config *config, const struct request_style *style)
{
    struct llm_config changed = *config;
    struct llm *llm;

    changed.endpoints = (struct endpoint_config *)(uintptr_t)endpoint;
    llm_close(rig->llm);
    assert_int_equal(llm_create(&llm, &rig->loop, &changed, rig->dir, NULL), 0);
    rig->llm = llm;
    return llm_forecaster(llm, 0, style);
}

static void what_changes_answers_is_another_forecaster(void **state)
{
    struct rig *rig = *state;
    const struct endpoint_config base = rig->endpoint[0];
    json_t *thinking = json_pack("{s:i, s:i}", "a", 1, "b", 2),
           *turned = json_pack("{s:i, s:i}", "b", 2, "a", 1);
    struct endpoint_config endpoint[] = {base, base, base, base, base, base, base, base};
    const struct request_style first = request_style_first(API_CHAT);
    struct request_style style[] = {first, first, first, first};
    struct llm_config config[] = {rig->config, rig->config, rig->config};
    char *name[32];
    size_t count = 0;

    endpoint[1].model = "other";
    endpoint[2].url = stub_url(rig->stub[1]);
    endpoint[3].form = API_RESPONSES;
    endpoint[4].effort = "low";
    endpoint[5].extra = thinking;
    endpoint[6].temperature = 0.7;
    endpoint[7].max_tokens = 4000;
    for (size_t i = 0; i < ARRAY_LEN(endpoint); i++) {
        name[count++] = name_with(rig, &endpoint[i], &rig->config, &first);
    }
    style[0].format = OUTPUT_TEXT;
    style[1].no_logprobs = true;
    style[2].no_temperature = true;
    style[3].no_effort = true;
    for (size_t i = 0; i < ARRAY_LEN(style); i++) {
        name[count++] = name_with(rig, &base, &rig->config, &style[i]);
    }
    config[0].samples = 2;
    config[1].temperature = 0.9;
    config[2].max_tokens = 200;
    for (size_t i = 0; i < ARRAY_LEN(config); i++) {
        name[count++] = name_with(rig, &base, &config[i], &first);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(name[i], name[j]) == 0) {
                fail_msg("%zu and %zu are both %s", j, i, name[i]);
            }
        }
    }
    // What only says how often and at what price it is asked changes nothing.
    struct endpoint_config same = base, with = base;
    struct llm_config other = rig->config;
    struct request_style marks = first;
    same.name = "renamed";
    same.key = "another key";
    same.weight = 3;
    same.in_flight = 1;
    same.price_output = 7;
    same.temperature = rig->config.temperature;
    same.max_tokens = rig->config.max_tokens;
    other.deadline_ms = 1000;
    marks.no_cache = true;
    marks.limit = LIMIT_OTHER;
    char *again = name_with(rig, &same, &other, &marks);
    assert_string_equal(again, name[0]);
    assert_memory_equal(again, "tester #", 8);
    with.extra = turned;
    char *sorted = name_with(rig, &with, &rig->config, &first);
    assert_string_equal(sorted, name[5]);
    free(sorted);
    free(again);
    while (count > 0) {
        free(name[--count]);
    }
    json_decref(thinking);
    json_decref(turned);
}

static void an_answer_is_kept_for_who_gave_it(void **state)
{
    struct rig *rig = *state;
    size_t asked = 0;
    json_t *extra = json_pack("{s:b}", "think", 1);

    ask_one(rig, "kernel", 0);
    char *plain = xstrdup(rig->forecaster);
    assert_int_equal(stub_requests(rig->stub[0]), ++asked);
    ask_one(rig, "kernel", 0);
    assert_int_equal(stub_requests(rig->stub[0]), asked); // it is known
    // Each change asks anew, and what was said before the change is still known after it.
    for (size_t i = 0; i < 4; i++) {
        const struct endpoint_config before = rig->endpoint[0];

        rig->endpoint[0].effort = i == 0 ? "low" : NULL;
        rig->endpoint[0].extra = i == 1 ? extra : NULL;
        rig->endpoint[0].temperature = i == 2 ? 0.1 : -1;
        rig->endpoint[0].max_tokens = i == 3 ? 50 : 0;
        reopen(rig);
        ask_one(rig, "kernel", 0);
        assert_int_equal(stub_requests(rig->stub[0]), ++asked);
        assert_string_not_equal(rig->forecaster, plain);
        rig->endpoint[0] = before;
        reopen(rig);
        ask_one(rig, "kernel", 0);
        assert_int_equal(stub_requests(rig->stub[0]), asked);
        assert_string_equal(rig->forecaster, plain);
    }
    json_decref(extra);
    free(plain);
}

static void of_two_endpoints_each_answers_for_itself(void **state)
{
    struct rig *rig = *state;
    char *name[ENDPOINTS];

    rig->config.count = ENDPOINTS;
    reopen(rig);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        ask_one(rig, "fresh", i + 1);
        name[i] = xstrdup(rig->forecaster);
        assert_memory_equal(name[i], "tester #", 8);
    }
    assert_string_not_equal(name[0], name[1]);
    struct worker_status status;
    message_init(&worker_status_message, &status);
    llm_status(rig->llm, &status);
    for (size_t i = 0; i < ENDPOINTS; i++) {
        assert_string_equal(status.endpoints[i].forecaster, name[i]);
    }
    message_clear(&worker_status_message, &status);
    // Where the second one alone has answered, its answer is known, and known as its own.
    rig->endpoint[0].url = stub_url(rig->stub[1]);
    rig->config.count = 1;
    reopen(rig);
    ask_one(rig, "kernel", 0);
    assert_string_equal(rig->forecaster, name[1]);
    size_t asked = stub_requests(rig->stub[1]);
    rig->endpoint[0].url = stub_url(rig->stub[0]);
    rig->config.count = ENDPOINTS;
    reopen(rig);
    ask_one(rig, "kernel", 0);
    assert_string_equal(rig->forecaster, name[1]);
    assert_int_equal(rig->requests, 0);
    assert_int_equal(stub_requests(rig->stub[1]), asked);
    free(name[0]);
    free(name[1]);
}

static void all_samples_of_a_forecast_are_of_one_endpoint(void **state)
{
    struct rig *rig = *state;

    rig->config.count = ENDPOINTS;
    rig->config.samples = 4;
    reopen(rig);
    for (size_t i = 0; i < 6; i++) {
        char *source = xasprintf("kernel %zu", i);
        size_t before = stub_requests(rig->stub[0]), other = stub_requests(rig->stub[1]);

        ask_one(rig, source, 0);
        before = stub_requests(rig->stub[0]) - before;
        other = stub_requests(rig->stub[1]) - other;
        assert_int_equal(before + other, 4);
        assert_true(before == 0 || other == 0);
        free(source);
    }
}

#define RIGGED(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIGGED(what_changes_answers_is_another_forecaster),
        RIGGED(an_answer_is_kept_for_who_gave_it),
        RIGGED(of_two_endpoints_each_answers_for_itself),
        RIGGED(all_samples_of_a_forecast_are_of_one_endpoint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
