// A search's questions when endpoints are broken: what the other one answers, what it costs in time
// and requests when nobody does, and that a limit on spending holds.
#include "tests/worker/llm/llm_fixture.h"
#include "worker/endpoint/endpoint.h"
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCHES 7
#define BATCH 8

struct rig {
    uv_loop_t loop;
    char *dir;
    struct stub *good, *bad; // the servers
    char *nowhere;           // url of an address where nothing listens
    struct llm_config config;
    struct endpoint_config endpoint[2];
    const struct stub_reply *broken; // what the bad one answers
    size_t bad_after;                // so many requests it answers well first
    uint64_t usage;                  // tokens that an answer states
    void *engine;
    bool done;
    struct forecast_reply reply;
};

#define GOOD_CONTENT                                                                               \
    "{\\\"bin\\\":\\\"G\\\",\\\"p\\\":{\\\"F\\\":0.2,\\\"G\\\":0.8},\\\"p_correct\\\":0.9}"

static void good_reply(struct rig *rig, struct stub_reply *reply)
{
    static char body[512];

    (void)snprintf(body, sizeof(body),
                   "{\"choices\":[{\"message\":{\"content\":\"" GOOD_CONTENT
                   "\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":%llu,"
                   "\"completion_tokens\":10}}",
                   (unsigned long long)(rig->usage > 10 ? rig->usage - 10 : 990));
    *reply = (struct stub_reply){.status = 200, .body = body, .delay_ms = 1};
}

static void answer_well(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    (void)request;
    good_reply(owner, reply);
}

static void answer_badly(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    struct rig *rig = owner;

    if (request->number < rig->bad_after) {
        good_reply(rig, reply);
    } else {
        *reply = *rig->broken;
    }
}

// An address of this machine where nothing listens: a port that was free a moment ago.
static char *url_of_nobody(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    close(fd);
    return xasprintf("http://127.0.0.1:%d/v1", ntohs(address.sin_port));
}

static int rig_up(void **state)
{
    struct rig *rig = xcalloc(1, sizeof(*rig));

    assert_int_equal(file_make_temp_dir(&rig->dir, "kcast-broken", NULL), 0);
    uv_loop_init(&rig->loop);
    rig->good = stub_start(&rig->loop, answer_well, rig);
    rig->bad = stub_start(&rig->loop, answer_badly, rig);
    rig->nowhere = url_of_nobody();
    rig->config = (struct llm_config){
        .samples = 1, .max_tokens = 100, .temperature = 0.5, .deadline_ms = 60000};
    *state = rig;
    return 0;
}

static void open_rig(struct rig *rig, const char *first, const char *second)
{
    const char *const url[] = {first, second};
    struct engine_config config = {.loop = &rig->loop, .state_dir = rig->dir, .llm = &rig->config};
    struct err err = ERR_INIT;

    rig->config.count = second ? 2 : 1;
    rig->config.endpoints = rig->endpoint;
    for (size_t i = 0; i < rig->config.count; i++) {
        rig->endpoint[i] = (struct endpoint_config){.name = i == 0 ? "one" : "two",
                                                    .url = url[i],
                                                    .model = "tester",
                                                    .key = i == 0 ? "key-one" : "key-two",
                                                    .weight = 1,
                                                    .in_flight = 16,
                                                    .temperature = -1};
    }
    if (engine_llm.open(&rig->engine, &config, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static void close_rig(struct rig *rig)
{
    engine_llm.close(rig->engine);
    rig->engine = NULL;
    message_clear(&forecast_reply_message, &rig->reply);
    message_init(&forecast_reply_message, &rig->reply);
}

static int rig_down(void **state)
{
    struct rig *rig = *state;

    if (rig->engine) {
        close_rig(rig);
    }
    stub_stop(rig->good);
    stub_stop(rig->bad);
    while (uv_run(&rig->loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&rig->loop), 0);
    assert_int_equal(file_remove_tree(rig->dir, NULL), 0);
    free(rig->dir);
    free(rig->nowhere);
    free(rig);
    return 0;
}

static void on_batch(void *owner, const struct err *error, const void *reply)
{
    struct rig *rig = owner;

    assert_null(error);
    rig->done = true;
    uv_stop(&rig->loop);
    message_clear(&forecast_reply_message, &rig->reply);
    message_copy(&forecast_reply_message, &rig->reply, reply);
}

// Asks about the candidates of one batch. Returns how many were answered.
static size_t ask_batch(struct rig *rig, size_t batch)
{
    struct forecast_request request = request_of("x", "y");
    size_t answered = 0;

    for (size_t i = 0; i < request.candidates_count; i++) {
        message_clear(&candidate_facts_message, &request.candidates[i]);
    }
    free(request.candidates);
    request.candidates = xcalloc(BATCH, sizeof(*request.candidates));
    request.candidates_count = BATCH;
    for (size_t i = 0; i < BATCH; i++) {
        char source[64];

        (void)snprintf(source, sizeof(source), "candidate %zu of batch %zu", i, batch);
        message_init(&candidate_facts_message, &request.candidates[i]);
        request.candidates[i].id = i + 1;
        request.candidates[i].source = bytes_of(source);
    }
    rig->done = false;
    engine_llm.forecast(rig->engine, &request, on_batch, rig);
    while (!rig->done) {
        (void)uv_run(&rig->loop, UV_RUN_DEFAULT); // until uv_stop
    }
    for (size_t i = 0; i < rig->reply.forecasts_count; i++) {
        answered += rig->reply.forecasts[i].raw ? 1 : 0;
    }
    return answered;
}

static size_t ask_all(struct rig *rig)
{
    size_t answered = 0;

    for (size_t batch = 0; batch < BATCHES; batch++) {
        answered += ask_batch(rig, batch);
    }
    return answered;
}

#define ERROR_BODY(message) "{\"error\":{\"message\":\"" message "\"}}"
#define CONTENT_BODY(content, finish)                                                              \
    "{\"choices\":[{\"message\":{\"content\":" content "},\"finish_reason\":\"" finish             \
    "\"}],\"usage\":{\"prompt_tokens\":990,\"completion_tokens\":100}}"

static const struct {
    const char *name;
    struct stub_reply reply;
} broken[] = {
    {"no money", {.status = 402, .body = ERROR_BODY("Insufficient Balance")}},
    {"quota",
     {.status = 429,
      .body = "{\"error\":{\"message\":\"You exceeded your current quota, "
              "please check your plan and billing details.\",\"code\":"
              "\"insufficient_quota\"}}"}},
    {"no credit at Anthropic",
     {.status = 400, .body = ERROR_BODY("Your credit balance is too low")}},
    {"no such model", {.status = 404, .body = ERROR_BODY("The model `x` does not exist")}},
    {"no such page", {.status = 404, .body = "<html>404</html>"}},
    {"a bad key", {.status = 401, .body = ERROR_BODY("Incorrect API key: key-two")}},
    {"a bad key as 403", {.status = 403, .body = ERROR_BODY("Forbidden")}},
    {"no way to ask", {.status = 400, .body = ERROR_BODY("Bad Request")}},
    {"a filter",
     {.status = 400,
      .body = "{\"error\":{\"message\":\"The response was filtered\","
              "\"code\":\"content_filter\"}}"}},
    {"a filter behind the answer", {.status = 200, .body = CONTENT_BODY("null", "content_filter")}},
    {"a refusal",
     {.status = 200,
      .body = "{\"choices\":[{\"message\":{\"content\":null,\"refusal\":"
              "\"I cannot.\"},\"finish_reason\":\"stop\"}]}"}},
    {"a refusal in prose", {.status = 200, .body = CONTENT_BODY("\"I cannot help.\"", "stop")}},
    {"too long",
     {.status = 400,
      .body = "{\"error\":{\"message\":\"too long\",\"code\":"
              "\"context_length_exceeded\"}}"}},
    {"resets", {.reset = true}},
    {"half an answer", {.status = 200, .body = "half", .cut = true}},
    {"broken", {.status = 500, .body = "oops"}},
    {"an error as an answer", {.status = 200, .body = ERROR_BODY("overloaded")}},
    {"busy for an hour", {.status = 429, .headers = "Retry-After: 3600\r\n", .body = "{}"}},
};

// One broken endpoint of two: at least 54 of 56 candidates are forecast, from the first one on or
// after it has worked for a while.
static void one_broken_endpoint_of_two_loses_nothing(void **state)
{
    struct rig *rig = *state;

    for (size_t i = 0; i < 2 * ARRAY_LEN(broken); i++) {
        rig->broken = &broken[i / 2].reply;
        rig->bad_after = stub_requests(rig->bad) + (i % 2) * 12;
        open_rig(rig, stub_url(rig->good), stub_url(rig->bad));
        size_t answered = ask_all(rig);
        printf("%-28s %s: %zu of %d\n", broken[i / 2].name, i % 2 ? "later" : "from the start",
               answered, BATCHES * BATCH);
        if (answered < 54) {
            fail_msg("%s: %zu of %d answered: %s", broken[i / 2].name, answered, BATCHES * BATCH,
                     rig->reply.forecasts[0].reason);
        }
        close_rig(rig);
        // Kept answers would hide the next case.
        char *cache = xasprintf("%s/answers.db", rig->dir);
        while (uv_run(&rig->loop, UV_RUN_NOWAIT) != 0 && file_exists(cache)) {
            (void)unlink(cache);
        }
        free(cache);
    }
}

// One that takes a request and never says a word does not keep the other one from answering.
static void a_silent_endpoint_of_two_loses_nothing(void **state)
{
    static const struct stub_reply silent = {.silent = true};
    struct rig *rig = *state;

    rig->broken = &silent;
    rig->config.deadline_ms = 4000;
    open_rig(rig, stub_url(rig->bad), stub_url(rig->good));
    size_t answered = ask_all(rig);
    printf("silent: %zu of %d\n", answered, BATCHES * BATCH);
    assert_true(answered >= 54);
}

static void on_tick(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void on_gone(uv_handle_t *handle)
{
    *(bool *)handle->data = true;
}

// Whether the engine's endpoint rests, or has answered so many requests.
static void on_status(void *owner, const struct err *error, const void *reply)
{
    struct worker_status *status = owner;

    assert_null(error);
    message_copy(&worker_status_message, status, reply);
}

static struct endpoint_info first_endpoint(struct rig *rig)
{
    struct worker_status status = {.engine = NULL};

    engine_llm.status(rig->engine, on_status, &status);
    while (!status.engine) {
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
    struct endpoint_info info = status.endpoints[0];
    info.url = info.model = info.rung = info.name = info.api = info.trouble = NULL;
    message_clear(&worker_status_message, &status);
    return info;
}

// After its rest an endpoint is tried with a question whose asker is not kept waiting for it. What
// it says then is kept, and from then on it answers.
static void nobody_waits_for_an_endpoint_that_is_tried_again(void **state)
{
    static const struct stub_reply refused = {.status = 401, .body = ERROR_BODY("no")};
    struct rig *rig = *state;
    struct stub_reply slow;
    uv_timer_t timer;
    bool gone = false;

    rig->broken = &refused;
    open_rig(rig, stub_url(rig->bad), NULL);
    assert_int_equal(ask_batch(rig, 0), 0);
    assert_int_equal(stub_requests(rig->bad), 1);
    (void)uv_timer_init(&rig->loop, &timer);
    timer.data = &gone;
    while (first_endpoint(rig).open) { // it rests for five seconds
        (void)uv_timer_start(&timer, on_tick, 50, 0);
        (void)uv_run(&rig->loop, UV_RUN_DEFAULT);
    }
    good_reply(rig, &slow);
    slow.delay_ms = 300;
    rig->broken = &slow;
    assert_int_equal(ask_batch(rig, 1), 0);
    assert_non_null(strstr(rig->reply.forecasts[0].reason, "is being tried again"));
    while (first_endpoint(rig).requests < 2 || first_endpoint(rig).in_flight > 0) {
        (void)uv_timer_start(&timer, on_tick, 10, 0);
        (void)uv_run(&rig->loop, UV_RUN_DEFAULT);
    }
    assert_int_equal(stub_requests(rig->bad), 2); // one of the eight
    assert_int_equal(ask_batch(rig, 1), BATCH);
    assert_int_equal(stub_requests(rig->bad), 2 + BATCH - 1); // the trial's answer was kept
    uv_close((uv_handle_t *)&timer, on_gone);
    while (!gone) {
        (void)uv_run(&rig->loop, UV_RUN_NOWAIT);
    }
}

static void two_where_nothing_listens_cost_no_time(void **state)
{
    struct rig *rig = *state;

    open_rig(rig, rig->nowhere, "http://127.0.0.1:1/v1");
    uint64_t began = uv_hrtime();
    assert_int_equal(ask_all(rig), 0);
    double seconds = (double)(uv_hrtime() - began) * 1e-9;
    printf("nothing listening: %.2f s for %d batches\n", seconds, BATCHES);
    // The deadline of one question is a minute, and nobody waited for it even once.
    assert_true(seconds < 60);
    for (size_t i = 0; i < BATCH; i++) {
        assert_non_null(strstr(rig->reply.forecasts[i].reason, "no endpoint can answer now"));
        assert_non_null(strstr(rig->reply.forecasts[i].reason, "cannot be reached"));
    }
}

// Every answer is cut off. Two requests at most for each candidate, and the option is named.
static void answers_that_are_cut_off_are_asked_for_once_more(void **state)
{
    static const struct stub_reply cut = {.status = 200,
                                          .body = CONTENT_BODY("\"Let me\"", "length")};
    struct rig *rig = *state;

    rig->broken = &cut;
    open_rig(rig, stub_url(rig->bad), NULL);
    assert_int_equal(ask_batch(rig, 0), 0);
    assert_true(stub_requests(rig->bad) <= 2 * BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        assert_non_null(strstr(rig->reply.forecasts[i].reason, "cut off at 200 tokens"));
        assert_non_null(strstr(rig->reply.forecasts[i].reason, "max-tokens in [endpoint one]"));
    }
    size_t before = stub_requests(rig->bad);
    assert_int_equal(ask_batch(rig, 1), 0);
    assert_int_equal(stub_requests(rig->bad) - before, BATCH); // the limit is known by now
}

// The other forms' words for it.
static void every_form_s_word_for_a_cut_is_understood(void **state)
{
    static const char *const bodies[] = {
        "{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},"
        "\"output\":[{\"type\":\"reasoning\",\"summary\":[]}],\"usage\":{\"input_tokens\":9}}",
        "{\"type\":\"message\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"Hm\"}],"
        "\"stop_reason\":\"max_tokens\",\"usage\":{\"input_tokens\":9,\"output_tokens\":100}}",
        CONTENT_BODY("null", "length"),
        CONTENT_BODY("null", "model_length"),
    };
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct stub_reply cut = {.status = 200, .body = bodies[i]};
        size_t before = stub_requests(rig->bad);

        rig->broken = &cut;
        rig->config.max_tokens = 100 + i; // nothing is known of this limit
        open_rig(rig, stub_url(rig->bad), NULL);
        assert_int_equal(ask_batch(rig, i), 0);
        assert_true(stub_requests(rig->bad) - before <= 2 * BATCH);
        assert_non_null(strstr(rig->reply.forecasts[0].reason, "was cut off at"));
        close_rig(rig);
    }
}

// Answers that take more than anybody would expect, and many at once: one may go beyond the limit.
static void a_limit_is_exceeded_by_one_answer_at_most(void **state)
{
    static const uint64_t usage[] = {40, 1000, 7000};
    struct rig *rig = *state;

    for (size_t i = 0; i < ARRAY_LEN(usage); i++) {
        rig->usage = usage[i];
        rig->config.limits.worker.tokens = 20000 * (double)(i + 1);
        open_rig(rig, stub_url(rig->good), NULL);
        for (size_t batch = 0; batch < 80; batch++) {
            ask_batch(rig, 100 * i + batch);
        }
        if (rig->config.limits.worker.tokens < 640 * (double)usage[i]) {
            assert_non_null(strstr(rig->reply.forecasts[0].reason, "the worker has used up its"));
        }
        close_rig(rig);
    }
    // What was really answered, over three workers with one state.
    char *path = xasprintf("%s/endpoints.db", rig->dir);
    struct endpoint_store *store = NULL;
    assert_int_equal(endpoint_store_open(&store, path, NULL), 0);
    double spent = endpoint_store_spent(store, "w").tokens;
    printf("spent %.0f of 60000\n", spent);
    assert_true(spent >= 60000 && spent < 60000 + 7000);
    endpoint_store_close(store);
    free(path);
}

#define RIGGED(name) cmocka_unit_test_setup_teardown(name, rig_up, rig_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIGGED(one_broken_endpoint_of_two_loses_nothing),
        RIGGED(a_silent_endpoint_of_two_loses_nothing),
        RIGGED(nobody_waits_for_an_endpoint_that_is_tried_again),
        RIGGED(two_where_nothing_listens_cost_no_time),
        RIGGED(answers_that_are_cut_off_are_asked_for_once_more),
        RIGGED(every_form_s_word_for_a_cut_is_understood),
        RIGGED(a_limit_is_exceeded_by_one_answer_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
