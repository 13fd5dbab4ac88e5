// service and remote against each other on loopback, in one loop.
#include "net/remote.h"
#include "net/service.h"
#include "net/url.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    struct service *service;
    struct remote *remote;
    struct exchange *parked[8]; // by the handler, oldest first
    size_t parked_count;
    int answers;
    enum err_code last_error;
    char last_text[256];
};

// STATUS answers at once, WAIT parks, CANCEL fails, everything else is unknown.
static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    struct fixture *f = owner;
    struct err err = ERR_INIT;
    if (request->op == OP_HELLO) {
        static const char *const features[] = {"one", "two"};
        exchange_hello(exchange, request, "kcastd", features, 2, 20000);
    } else if (request->op == OP_STATUS) {
        struct status_request body;
        if (!exchange_read_body(exchange, request, &status_request_message, &body))
            return;
        struct status status;
        message_init(&status_message, &status);
        status.waits = body.jobs_count;
        exchange_reply(exchange, &status_message, &status);
        message_clear(&status_request_message, &body);
    } else if (request->op == OP_WAIT) {
        if (exchange_park(exchange, NULL, NULL)) {
            f->parked[f->parked_count++] = exchange;
        } else {
            struct waited none = {0};
            exchange_reply(exchange, &waited_message, &none);
        }
    } else {
        err_set(&err, ERR_UNSUPPORTED, "operation %llu is not known here", (unsigned long long)request->op);
        exchange_fail_busy(exchange, &err, 123);
    }
}

static void open_service(struct fixture *f, const char *url)
{
    struct err err = ERR_INIT;
    struct service_config config = {.url = url,
                                    .exchanges_max = 8,
                                    .parked_max = 5,
                                    .message_max = 1 << 20,
                                    .epoch = 77,
                                    .on_request = on_request,
                                    .owner = f};
    if (service_create(&f->service, &f->loop, &config, &err) != 0)
        fail_msg("%s", err.text);
}

static int set_up(void **state)
{
    struct err err = ERR_INIT;
    struct fixture *f = xcalloc(1, sizeof *f);
    uv_loop_init(&f->loop);
    open_service(f, "tcp://127.0.0.1:0");
    assert_int_equal(remote_create(&f->remote, &f->loop, service_url(f->service), &err), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    remote_close(f->remote);
    service_close(f->service);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f);
    return 0;
}

static void on_answer(void *owner, const struct err *error, uint64_t retry, void *reply)
{
    struct fixture *f = owner;
    (void)retry;
    (void)reply;
    f->answers++;
    f->last_error = error != NULL ? error->code : ERR_NONE;
    snprintf(f->last_text, sizeof f->last_text, "%s", error != NULL ? error->text : "");
}

static void run_until(struct fixture *f, int answers)
{
    while (f->answers < answers)
        uv_run(&f->loop, UV_RUN_ONCE);
}

static void call(struct fixture *f, enum op op, const struct message *message, const void *body, const struct message *answer,
                 uint64_t deadline_ms)
{
    remote_call(f->remote, op, message, body, answer, deadline_ms, on_answer, f);
}

static void hello_agrees_on_a_version(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct hello_reply hello;
    assert_int_equal(remote_hello(f->remote, "kcastd", &hello, &err), 0);
    assert_int_equal(hello.version, 1);
    assert_int_equal(hello.features_count, 2);
    assert_int_equal(hello.pid, getpid());
    message_clear(&hello_reply_message, &hello);
    assert_int_equal(remote_hello(f->remote, "kcast-worker", &hello, &err), ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "is a kcastd where a kcast-worker is needed"));
}

static void a_client_of_the_future_is_refused_with_a_sentence(void **state)
{
    struct fixture *f = *state;
    struct hello_request hello = {.version_min = 90, .version_max = 99};
    call(f, OP_HELLO, &hello_request_message, &hello, &hello_reply_message, 5000);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_VERSION);
    assert_non_null(strstr(f->last_text, "protocol 1 to 1"));
}

static void many_calls_are_answered_each_once(void **state)
{
    struct fixture *f = *state;
    struct status_request body = {0};
    for (int i = 0; i < 200; i++)
        call(f, OP_STATUS, &status_request_message, &body, &status_message, 20000);
    run_until(f, 200);
    assert_int_equal(f->last_error, ERR_NONE);
    assert_int_equal(service_request_count(f->service), 200);
}

static void parked_requests_do_not_block_others_and_are_bounded(void **state)
{
    struct fixture *f = *state;
    uint64_t job = 1;
    struct wait wait = {.jobs = &job, .jobs_count = 1};
    struct status_request body = {0};
    for (int i = 0; i < 6; i++)
        call(f, OP_WAIT, &wait_message, &wait, &waited_message, 20000);
    run_until(f, 1); // the sixth is answered at once
    assert_int_equal(f->parked_count, 5);
    call(f, OP_STATUS, &status_request_message, &body, &status_message, 20000);
    run_until(f, 2);
    for (size_t i = 0; i < f->parked_count; i++) {
        struct waited none = {0};
        exchange_reply(f->parked[i], &waited_message, &none);
    }
    f->parked_count = 0;
    run_until(f, 7);
    assert_int_equal(f->last_error, ERR_NONE);
}

static void a_deadline_ends_a_call_that_nobody_answers(void **state)
{
    struct fixture *f = *state;
    uint64_t job = 1;
    struct wait wait = {.jobs = &job, .jobs_count = 1};
    call(f, OP_WAIT, &wait_message, &wait, &waited_message, 50);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_TIMED_OUT);
}

static void an_error_reply_arrives_with_code_and_text(void **state)
{
    struct fixture *f = *state;
    call(f, OP_CANCEL, NULL, NULL, &job_infos_message, 5000);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_UNSUPPORTED);
    assert_non_null(strstr(f->last_text, "not known here"));
}

static void a_body_of_the_wrong_kind_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    struct fact fact = {.name = (char *)(uintptr_t) "x", .value = 1};
    call(f, OP_STATUS, &fact_message, &fact, &status_message, 5000);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_PROTOCOL);
    assert_non_null(strstr(f->last_text, "STATUS"));
}

static void a_call_made_while_the_server_is_away_waits_for_it(void **state)
{
    struct fixture *f = *state;
    struct status_request body = {0};
    char url[64];
    snprintf(url, sizeof url, "%s", service_url(f->service));
    call(f, OP_STATUS, &status_request_message, &body, &status_message, 20000);
    run_until(f, 1);
    service_close(f->service);
    call(f, OP_STATUS, &status_request_message, &body, &status_message, 20000);
    run_until(f, 1);
    open_service(f, url);
    while (f->answers < 2)
        uv_run(&f->loop, UV_RUN_ONCE);
    if (f->last_error == ERR_UNREACHABLE) { // it was sent into the dying connection: told at once, and asked again
        call(f, OP_STATUS, &status_request_message, &body, &status_message, 20000);
        run_until(f, 3);
    }
    assert_int_equal(f->last_error, ERR_NONE);
}

static void an_unreachable_server_is_one_sentence(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct remote *nobody;
    struct hello_reply hello;
    assert_int_equal(remote_create(&nobody, &f->loop, "tcp://127.0.0.1:1", &err), 0);
    assert_int_equal(remote_hello(nobody, "kcastd", &hello, &err), ERR_UNREACHABLE);
    assert_non_null(strstr(err.text, "no kcastd answers on tcp://127.0.0.1:1"));
    remote_close(nobody);
}

static int connect_raw(const struct fixture *f)
{
    struct err err = ERR_INIT;
    struct url url;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(url_parse(&url, service_url(f->service), &err), 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(url.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

// Wrong protocols, half handshakes and silence on the port leave the service as it was.
static void strangers_on_the_port_do_no_harm(void **state)
{
    struct fixture *f = *state;
    static const char http[] = "GET / HTTP/1.1\r\n\r\n";
    static const unsigned char req[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0}; // a REQ peer's greeting
    static const unsigned char huge[] = {0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct status_request body = {0};
    int fd[40];
    for (int i = 0; i < 40; i++) {
        fd[i] = connect_raw(f);
        if (i % 4 == 1)
            assert_int_equal(send(fd[i], http, sizeof http, MSG_NOSIGNAL), sizeof http);
        if (i % 4 >= 2)
            assert_int_equal(send(fd[i], req, sizeof req, MSG_NOSIGNAL), sizeof req);
        if (i % 4 == 3)
            (void)!send(fd[i], huge, sizeof huge, MSG_NOSIGNAL);
    }
    call(f, OP_STATUS, &status_request_message, &body, &status_message, 20000);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_NONE);
    for (int i = 0; i < 40; i++)
        close(fd[i]);
    call(f, OP_STATUS, &status_request_message, &body, &status_message, 20000);
    run_until(f, 2);
    assert_int_equal(f->last_error, ERR_NONE);
}

static void closing_ends_pending_calls(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    uint64_t job = 1;
    struct wait wait = {.jobs = &job, .jobs_count = 1};
    call(f, OP_WAIT, &wait_message, &wait, &waited_message, 20000);
    while (f->parked_count == 0)
        uv_run(&f->loop, UV_RUN_ONCE);
    remote_close(f->remote);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->last_error, ERR_STOPPED);
    assert_int_equal(remote_create(&f->remote, &f->loop, service_url(f->service), &err), 0);
}

// nng 1.5.2 waits for ever in some of these.
static void closing_ends_while_replies_arrive(void **state)
{
    struct fixture *f = *state;
    struct status_request body = {0};
    for (int round = 0; round < 20; round++) {
        struct err err = ERR_INIT;
        f->answers = 0;
        for (int i = 0; i < 7; i++)
            call(f, OP_STATUS, &status_request_message, &body, &status_message, 20000);
        run_until(f, 1);
        remote_close(f->remote);
        assert_int_equal(f->answers, 7);
        assert_int_equal(remote_create(&f->remote, &f->loop, service_url(f->service), &err), 0);
    }
}

static void an_open_listener_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct service *open;
    struct service_config config = {.url = "tcp://0.0.0.0:0", .exchanges_max = 1, .parked_max = 1, .message_max = 1024};
    assert_int_equal(service_create(&open, &f->loop, &config, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "not on loopback"));
    config.url = service_url(f->service);
    err_clear(&err);
    assert_int_equal(service_create(&open, &f->loop, &config, &err), ERR_BUSY);
}

static void urls(void **state)
{
    struct err err = ERR_INIT;
    struct url url;
    (void)state;
    assert_int_equal(url_parse(&url, "tcp://[::1]:7410", &err), 0);
    assert_string_equal(url.host, "::1");
    assert_int_equal(url.port, 7410);
    assert_true(url_is_loopback(&url));
    assert_int_equal(url_parse(&url, "tcp://127.9.9.9:1", &err), 0);
    assert_true(url_is_loopback(&url));
    assert_int_equal(url_parse(&url, "tcp://gpu1:1", &err), 0);
    assert_false(url_is_loopback(&url));
    static const char *const bad[] = {"", "http://a:1", "tcp://", "tcp://a", "tcp://:1", "tcp://a:x", "tcp://a:70000", "tcp://[::1]"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&err);
        assert_true(url_parse(&url, bad[i], &err) < 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hello_agrees_on_a_version),
        TEST(a_client_of_the_future_is_refused_with_a_sentence),
        TEST(many_calls_are_answered_each_once),
        TEST(parked_requests_do_not_block_others_and_are_bounded),
        TEST(a_deadline_ends_a_call_that_nobody_answers),
        TEST(an_error_reply_arrives_with_code_and_text),
        TEST(a_body_of_the_wrong_kind_is_refused_by_name),
        TEST(a_call_made_while_the_server_is_away_waits_for_it),
        TEST(an_unreachable_server_is_one_sentence),
        TEST(strangers_on_the_port_do_no_harm),
        TEST(closing_ends_pending_calls),
        TEST(closing_ends_while_replies_arrive),
        TEST(an_open_listener_is_refused),
        cmocka_unit_test(urls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
