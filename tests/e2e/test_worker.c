// The real kcast-worker over the wire: it learns, keeps what it acknowledged through kill -9,
// survives garbage, and leaves when told to.
#include "common/file.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "net/rpc/remote.h"
#include "tests/support/program.h"
#include "tests/support/until.h"
#include "tests/worker/space.h"
#include <arpa/inet.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define CALL_MS 60000

struct fixture {
    struct program program;
    char *state_dir;
    uv_loop_t loop;
    struct remote *remote;
};

static void launch(struct fixture *f)
{
    char *path = program_path("kcast-worker");
    const char *const argv[] = {
        path, "--listen", "tcp://127.0.0.1:0", "--state", f->state_dir, "--parent-death", NULL};
    program_start(&f->program, argv, NULL);
    free(path);
}

// Waits for READY and connects.
static void start(struct fixture *f)
{
    (void)signal(SIGPIPE, SIG_IGN); // a worker that is killed is an error of write(2)
    launch(f);
    if (!program_wait_ready(&f->program)) {
        fail_msg("kcast-worker is not ready: %s", program_log(&f->program));
    }
    assert_int_equal(remote_create(&f->remote, &f->loop, f->program.url, NULL), 0);
}

static void disconnect(struct fixture *f)
{
    remote_close(f->remote);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    f->remote = NULL;
}

// Its exit code.
static int stop(struct fixture *f)
{
    disconnect(f);
    return program_stop(&f->program);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    program_init(&f->program);
    f->state_dir = xasprintf("%s/state", f->program.dir);
    uv_loop_init(&f->loop);
    *state = f;
    start(f);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->remote) {
        disconnect(f);
    }
    program_release(&f->program);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f->state_dir);
    free(f);
    return 0;
}

static void make_observe(struct observe *observe, size_t from, size_t to)
{
    message_init(&observe_message, observe);
    observe->problem = xstrdup("sgemm");
    observe->device_class = xstrdup("cpu x");
    observe->outcomes = xcalloc(to - from, sizeof(*observe->outcomes));
    observe->outcomes_count = to - from;
    for (size_t i = from; i < to; i++) {
        struct space_point point = space_point_at(i * 7 % SPACE_POINTS, 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct outcome outcome = space_outcome(&point, &candidate);
        char key[32];
        snprintf(key, sizeof(key), "e2e/%zu", i);
        outcome.key = key;
        message_copy(&outcome_message, &observe->outcomes[i - from], &outcome);
    }
}

static struct observed observe(struct fixture *f, size_t from, size_t to)
{
    struct observe body;
    make_observe(&body, from, to);
    struct observed observed;
    struct err err = ERR_INIT;
    if (remote_call_sync(f->remote, OP_OBSERVE, &observe_message, &body, &observed_message,
                         &observed, CALL_MS, &err) < 0) {
        fail_msg("%s", err.text);
    }
    message_clear(&observe_message, &body);
    return observed;
}

static void forecast(struct fixture *f, size_t index, struct forecast_reply *ret)
{
    struct space_point point = space_point_at(index, 1);
    struct candidate_facts candidate = space_candidate(&point, index);
    struct forecast_request request;
    message_init(&forecast_request_message, &request);
    request.problem = (char *)"sgemm";
    request.device_class = (char *)"cpu x";
    request.incumbent_log2 = 1;
    request.candidates = &candidate;
    request.candidates_count = 1;
    struct err err = ERR_INIT;
    if (remote_call_sync(f->remote, OP_FORECAST, &forecast_request_message, &request,
                         &forecast_reply_message, ret, CALL_MS, &err) < 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(ret->forecasts_count, 1);
}

static uint64_t outcomes_known(struct fixture *f)
{
    struct worker_status status;
    struct empty body = {.unused = false};
    struct err err = ERR_INIT;
    if (remote_call_sync(f->remote, OP_WORKER_STATUS, &empty_message, &body, &worker_status_message,
                         &status, CALL_MS, &err) < 0) {
        fail_msg("%s", err.text);
    }
    uint64_t outcomes = status.outcomes;
    assert_string_equal(status.engine, "static");
    assert_true(status.uptime_seconds >= 0);
    assert_string_equal(status.state_dir, f->state_dir);
    message_clear(&worker_status_message, &status);
    return outcomes;
}

// And what it can do: callers send sources to engines that read them, and ask others for no
// candidates.
static void hello_names_the_program(void **state)
{
    struct fixture *f = *state;
    struct hello_reply hello;
    assert_int_equal(remote_hello_sync(f->remote, "kcast-worker", &hello, NULL), 0);
    assert_int_equal(hello.pid, f->program.pid);
    assert_string_equal(hello.features[0], "static");
    assert_non_null(hello.worker);
    assert_string_equal(hello.worker->engine, "static");
    assert_false(hello.worker->reads_sources);
    assert_false(hello.worker->proposes);
    assert_true(isnan(hello.worker->forecast_seconds)); // it has made none
    message_clear(&hello_reply_message, &hello);
}

static void hello_says_what_forecasts_take(void **state)
{
    struct fixture *f = *state;
    struct forecast_reply reply;
    forecast(f, 13, &reply);
    message_clear(&forecast_reply_message, &reply);
    struct hello_reply hello;
    assert_int_equal(remote_hello_sync(f->remote, "kcast-worker", &hello, NULL), 0);
    assert_true(hello.worker->forecast_seconds > 0 && hello.worker->forecast_seconds < 3600);
    message_clear(&hello_reply_message, &hello);
}

static void a_forecast_after_observe_knows_more_than_one_before(void **state)
{
    struct fixture *f = *state;
    struct forecast_reply before, after;
    forecast(f, 13, &before);
    assert_true(!(before.forecasts[0].confidence > 0));
    assert_non_null(before.forecasts[0].reason);
    struct observed observed = observe(f, 20, 100);
    assert_int_equal(observed.added, 80);
    forecast(f, 13, &after); // which has the model fitted to them
    assert_int_equal(after.forecasts[0].model_version, 80);
    assert_true(after.forecasts[0].p_improves > 0.9);
    assert_true(after.forecasts[0].confidence > 0);
    message_clear(&forecast_reply_message, &before);
    message_clear(&forecast_reply_message, &after);
}

static void a_restart_keeps_what_was_learnt(void **state)
{
    struct fixture *f = *state;
    struct forecast_reply before, after;
    observe(f, 0, 40);
    forecast(f, 77, &before);
    assert_int_equal(stop(f), 0);
    start(f);
    assert_int_equal(observe(f, 0, 40).added, 0); // told again after the restart
    forecast(f, 77, &after);
    before.forecasts[0].seconds = after.forecasts[0].seconds = 0;
    assert_true(message_equal(&forecast_reply_message, &before, &after));
    message_clear(&forecast_reply_message, &before);
    message_clear(&forecast_reply_message, &after);
}

static void on_observed(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    (void)retry_after_ms, (void)reply;
    if (!error) {
        ++*(size_t *)owner;
    }
}

static void kill_in_the_middle_of_observes_loses_nothing_acknowledged(void **state)
{
    struct fixture *f = *state;
    size_t acknowledged = 0;
    for (size_t i = 0; i < 40; i++) {
        struct observe body;
        make_observe(&body, i, i + 1);
        remote_call(f->remote, OP_OBSERVE, &observe_message, &body, &observed_message, CALL_MS,
                    on_observed, &acknowledged);
        message_clear(&observe_message, &body);
    }
    while (acknowledged < 10) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    program_kill(&f->program);
    size_t promised = acknowledged;
    disconnect(f);
    start(f);
    assert_true(outcomes_known(f) >= promised);
    assert_int_equal(observe(f, 0, 40).rows, 40); // the caller tells all of it again
}

static void expect_failure(struct fixture *f, enum op op, const struct message *body_message,
                           const void *body, int code)
{
    struct forecast_reply reply;
    struct err err = ERR_INIT;
    assert_int_equal(remote_call_sync(f->remote, op, body_message, body, &forecast_reply_message,
                                      &reply, CALL_MS, &err),
                     code);
    assert_true(strlen(err.text) > 0);
}

static void garbage_is_refused_and_survived(void **state)
{
    struct fixture *f = *state;
    struct hello_request other = {.version_min = 1, .version_max = 1};
    expect_failure(f, OP_FORECAST, &hello_request_message, &other, ERR_PROTOCOL);
    expect_failure(f, OP_OBSERVE, &hello_request_message, &other, ERR_PROTOCOL);
    expect_failure(f, OP_FORECAST, NULL, NULL, ERR_PROTOCOL);
    expect_failure(f, OP_SUBMIT, &hello_request_message, &other, ERR_UNSUPPORTED);
    struct observe bad;
    make_observe(&bad, 0, 2);
    bad.outcomes[1].verdict = 4711;
    expect_failure(f, OP_OBSERVE, &observe_message, &bad, ERR_INVALID);
    message_clear(&observe_message, &bad);
    assert_int_equal(outcomes_known(f), 0);
}

// They would be in its state, its status and its log.
static void names_that_cannot_be_shown_are_refused(void **state)
{
    struct fixture *f = *state;
    struct observe bad;

    make_observe(&bad, 0, 2);
    free(bad.problem);
    bad.problem = xstrdup("a\x1b[2J");
    expect_failure(f, OP_OBSERVE, &observe_message, &bad, ERR_INVALID);
    message_clear(&observe_message, &bad);
    make_observe(&bad, 0, 2);
    free(bad.device_class);
    bad.device_class = xstrdup("cpu\nb");
    expect_failure(f, OP_OBSERVE, &observe_message, &bad, ERR_INVALID);
    message_clear(&observe_message, &bad);
    make_observe(&bad, 0, 2);
    free(bad.outcomes[1].model);
    bad.outcomes[1].model = xstrdup("\xe2\x80\xae");
    expect_failure(f, OP_OBSERVE, &observe_message, &bad, ERR_INVALID);
    message_clear(&observe_message, &bad);
    assert_int_equal(outcomes_known(f), 0);
}

static void a_second_worker_on_the_same_state_is_refused(void **state)
{
    struct fixture *f = *state;
    struct fixture second = {.state_dir = f->state_dir};
    program_init(&second.program);
    launch(&second);
    assert_int_equal(program_wait(&second.program), err_exit(ERR_BUSY));
    char *text = program_log(&second.program);
    assert_non_null(strstr(text, "another kcast-worker uses"));
    free(text);
    program_release(&second.program);
    assert_int_equal(outcomes_known(f), 0); // the first one is well
}

static void a_damaged_state_is_refused_and_left_alone(void **state)
{
    struct fixture *f = *state;
    char junk[8192], *path = xasprintf("%s/worker.db", f->state_dir);
    assert_int_equal(stop(f), 0);
    memset(junk, 'x', sizeof(junk));
    assert_int_equal(file_replace(path, junk, sizeof(junk), false, NULL), 0);
    launch(f);
    assert_int_equal(program_wait(&f->program), EXIT_INVALID);
    char *text = program_log(&f->program);
    assert_non_null(strstr(text, "is damaged"));
    struct bytes after;
    assert_int_equal(file_read(&after, path, 1 << 20, NULL), 0);
    assert_int_equal(after.len, sizeof(junk));
    assert_memory_equal(after.data, junk, sizeof(junk));
    bytes_clear(&after);
    free(text);
    free(path);
}

static void sigterm_in_the_middle_of_work_ends_it_and_leaves_no_process(void **state)
{
    struct fixture *f = *state;
    size_t acknowledged = 0;
    for (size_t i = 0; i < 20; i++) {
        struct observe body;
        make_observe(&body, i * 20, i * 20 + 20);
        remote_call(f->remote, OP_OBSERVE, &observe_message, &body, &observed_message, CALL_MS,
                    on_observed, &acknowledged);
        message_clear(&observe_message, &body);
    }
    while (acknowledged < 1) {
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    pid_t pid = f->program.pid;
    assert_int_equal(program_children(pid, NULL, 0), 0);
    assert_int_equal(stop(f), 0);
    assert_false(program_alive(pid));
}

// What GET of path answers, head and body; malloc'd.
static char *get(const char *url, const char *path)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    char request[128], data[4096];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)strtoul(strrchr(url, ':') + 1, NULL, 10));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    struct strbuf answer = STRBUF_INIT;
    ssize_t got;
    while ((got = recv(fd, data, sizeof(data), 0)) > 0) {
        strbuf_add(&answer, data, (size_t)got);
    }
    close(fd);
    return strbuf_detach(&answer);
}

static bool http_has(const char *url, const char *path, const char *text)
{
    char *answer = get(url, path);
    bool found = strstr(answer, text);

    free(answer);
    return found;
}

// Asks until the answer has this in it, which happens as soon as the engine has answered once.
static void expect_http(const char *url, const char *path, const char *text)
{
    UNTIL(http_has(url, path, text));
}

static void who_watches_it_is_served(void **state)
{
    char *path = program_path("kcast-worker");
    char *log, *at, *url;

    (void)state;
    struct program program;
    program_init(&program);
    char *folder = xasprintf("%s/state", program.dir);
    program_start(&program,
                  (const char *[]){path, "--listen=tcp://127.0.0.1:0", "--http=127.0.0.1:0",
                                   "--state", folder, "--log-format=json", NULL},
                  NULL);
    assert_true(program_wait_ready(&program));
    log = program_log(&program);
    at = strstr(log, "\"url\":\"http://");
    assert_non_null(at);
    url = xstrndup(at + 7, strcspn(at + 7, "\""));
    expect_http(url, "/healthz", "HTTP/1.1 200 OK");
    expect_http(url, "/metrics", "\nkcast_worker_forecasts_total 0\n");
    expect_http(url, "/status.json", "\"engine\":\"static\"");
    expect_http(url, "/nothing", "HTTP/1.1 404");
    assert_int_equal(program_stop(&program), 0);
    program_release(&program);
    free(url);
    free(log);
    free(folder);
    free(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(hello_names_the_program),
        TEST(hello_says_what_forecasts_take),
        TEST(a_forecast_after_observe_knows_more_than_one_before),
        TEST(a_restart_keeps_what_was_learnt),
        TEST(kill_in_the_middle_of_observes_loses_nothing_acknowledged),
        TEST(garbage_is_refused_and_survived),
        TEST(names_that_cannot_be_shown_are_refused),
        TEST(a_second_worker_on_the_same_state_is_refused),
        TEST(a_damaged_state_is_refused_and_left_alone),
        TEST(sigterm_in_the_middle_of_work_ends_it_and_leaves_no_process),
        cmocka_unit_test(who_watches_it_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
