// The monitoring of a worker, with an engine that the test plays: what /healthz, /metrics and
// /status.json say before and after the engine has answered, and that closing waits for an answer
// that is still owed. The caller is a bare socket; the loop turns in this thread.
#include "worker/monitor.h"

#include "common/mem.h"
#include "net/url.h"
#include <errno.h>
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    struct worker_monitor *monitor;
    engine_done *done; // of the open question; NULL: none is open
    void *owner;
    size_t questions;
    char answer[65536];
};

static void status(void *engine, engine_done *done, void *owner)
{
    struct fixture *f = engine;

    assert_null(f->done); // one question at most is open
    f->done = done;
    f->owner = owner;
    f->questions++;
}

static const struct engine_ops ops = {.name = "fake", .status = status};

// Answers the open question.
static void reply(struct fixture *f, const struct err *error, const struct worker_status *body)
{
    engine_done *done = f->done;

    assert_non_null(done);
    f->done = NULL;
    done(f->owner, error, body);
}

static void complete(void *owner, struct worker_status *body)
{
    (void)owner;
    body->requests = 17;
    body->uptime_seconds = 2.5;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct worker_monitor_config config = {.loop = &f->loop,
                                           .address = "127.0.0.1:0",
                                           .ops = &ops,
                                           .engine = f,
                                           .complete = complete,
                                           .owner = f};
    struct err err = ERR_INIT;

    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    if (worker_monitor_create(&f->monitor, &config, &err) != 0) {
        fail_msg("%s", err.text);
    }
    while (!f->done) { // the first question comes at once
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    worker_monitor_close(f->monitor);
    if (f->done) {
        const struct err stopped = {.code = ERR_STOPPED, .text = "closed"};

        reply(f, &stopped, NULL);
    }
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f);
    return 0;
}

// Gets a path; returns the whole answer.
static const char *get(struct fixture *f, const char *path)
{
    struct sockaddr_storage address;
    struct url url;
    char *text = xasprintf("tcp%s", strchr(worker_monitor_url(f->monitor), ':'));

    assert_int_equal(url_parse(&url, text, NULL), 0);
    assert_true(url_address(&url, &address));
    free(text);
    int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(struct sockaddr_in)), 0);
    text = xasprintf("GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    free(text);
    size_t len = 0;
    for (ssize_t got = -1; got != 0;) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        got = recv(fd, f->answer + len, sizeof(f->answer) - 1 - len, MSG_DONTWAIT);
        assert_true(got >= 0 || errno == EAGAIN);
        len += got > 0 ? (size_t)got : 0;
    }
    f->answer[len] = '\0';
    close(fd);
    return f->answer;
}

static void says(struct fixture *f, const char *path, const char *text)
{
    if (!strstr(get(f, path), text)) {
        fail_msg("%s lacks \"%s\": %s", path, text, f->answer);
    }
}

static void until_the_engine_has_answered_it_is_not_well(void **state)
{
    struct fixture *f = *state;

    says(f, "/healthz", "HTTP/1.1 503 ");
    says(f, "/healthz", "the engine has not answered for ");
    // What only the service knows is there already.
    says(f, "/metrics", "\nkcast_worker_requests_total 17\n");
    says(f, "/metrics", "\nkcast_worker_uptime_seconds 2.5\n");
    says(f, "/nothing", "HTTP/1.1 404 ");
    assert_int_equal(f->questions, 1);
    struct worker_status body;
    message_init(&worker_status_message, &body);
    reply(f, NULL, &body);
    says(f, "/healthz", "HTTP/1.1 200 ");
    says(f, "/healthz", "ok\n");
}

static void an_error_is_no_answer(void **state)
{
    struct fixture *f = *state;
    const struct err error = {.code = ERR_INTERNAL, .text = "broken"};

    reply(f, &error, NULL);
    says(f, "/healthz", "HTTP/1.1 503 ");
    says(f, "/status.json", "HTTP/1.1 200 ");
}

static void the_last_answer_is_served_and_is_a_copy(void **state)
{
    struct fixture *f = *state;
    struct worker_status body;

    message_init(&worker_status_message, &body);
    body.engine = xstrdup("fake");
    body.outcomes = 5;
    body.forecasts = 1000000000000;
    body.cost = 0.125;
    body.models = xcalloc(1, sizeof(*body.models));
    body.models_count = 1;
    message_init(&model_info_message, body.models);
    body.models[0].problem = xstrdup("sgemm");
    body.models[0].device_class = xstrdup("cpu x");
    body.endpoints = xcalloc(2, sizeof(*body.endpoints));
    body.endpoints_count = 2;
    for (size_t i = 0; i < 2; i++) {
        message_init(&endpoint_info_message, &body.endpoints[i]);
        body.endpoints[i].url = xstrdup(i == 0 ? "http://a/v1" : "http://b/\"\\");
        body.endpoints[i].requests = 10 + i;
        body.endpoints[i].failures = 20 + i;
        body.endpoints[i].in_flight = 30 + i;
    }
    reply(f, NULL, &body);
    message_clear(&worker_status_message, &body);
    static const char *const lines[] = {
        "\nkcast_worker_outcomes 5\n",
        "\nkcast_worker_models 1\n",
        "\nkcast_worker_forecasts_total 1000000000000\n",
        "\nkcast_worker_cost_total 0.125\n",
        "\n# TYPE kcast_worker_cost_total counter\n",
        "\nkcast_worker_endpoint_requests_total{endpoint=\"http://a/v1\"} 10\n",
        "\nkcast_worker_endpoint_failures_total{endpoint=\"http://b/\\\"\\\\\"} 21\n",
        "\nkcast_worker_endpoint_in_flight{endpoint=\"http://b/\\\"\\\\\"} 31\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        says(f, "/metrics", lines[i]);
    }
    says(f, "/metrics", "text/plain; version=0.0.4");
    const char *json = strstr(get(f, "/status.json"), "\r\n\r\n");
    assert_non_null(json);
    json_t *object = json_loads(json, 0, NULL);
    assert_non_null(object);
    assert_string_equal(json_string_value(json_object_get(object, "engine")), "fake");
    assert_int_equal(json_integer_value(json_object_get(object, "requests")), 17);
    assert_int_equal(json_array_size(json_object_get(object, "endpoints")), 2);
    json_decref(object);
}

// A metric whose value nobody knows is there without a sample, not as a zero.
static void an_unknown_number_has_no_sample(void **state)
{
    struct fixture *f = *state;
    struct worker_status body;

    message_init(&worker_status_message, &body);
    assert_true(body.cost != body.cost);
    reply(f, NULL, &body);
    says(f, "/metrics", "# TYPE kcast_worker_cost_total counter\n# HELP");
    assert_null(strstr(f->answer, "\nkcast_worker_cost_total "));
    assert_null(strstr(f->answer, "nan"));
}

static void closing_waits_for_the_answer_that_is_owed(void **state)
{
    struct fixture *f = *state;
    struct worker_status body;

    worker_monitor_close(f->monitor);
    worker_monitor_close(NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT); // its handles are closed, and it still waits
    message_init(&worker_status_message, &body);
    reply(f, NULL, &body);
    f->monitor = NULL;
}

static void an_address_that_others_reach_is_refused(void **state)
{
    struct fixture *f = *state;
    struct worker_monitor_config config = {
        .loop = &f->loop, .address = "0.0.0.0:0", .ops = &ops, .engine = f, .complete = complete};
    struct worker_monitor *monitor = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(worker_monitor_create(&monitor, &config, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "--http"));
    assert_null(monitor);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(until_the_engine_has_answered_it_is_not_well),
        TEST(an_error_is_no_answer),
        TEST(the_last_answer_is_served_and_is_a_copy),
        TEST(an_unknown_number_has_no_sample),
        TEST(closing_waits_for_the_answer_that_is_owed),
        TEST(an_address_that_others_reach_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
