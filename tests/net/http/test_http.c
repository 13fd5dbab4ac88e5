// The HTTP server for monitoring: what it answers, what it refuses, and that it stays bounded. The
// caller is a bare socket; the loop turns in this thread until the server has answered or closed.
#include "net/http/http_request.h"
#include "net/http/http_server.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
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

#define ANSWER_MAX 65536
#define LARGE_KIB 8192 // of the answer to /large; more than the kernel keeps of a connection

static size_t larges; // answers to /large that were made

struct fixture {
    uv_loop_t loop;
    struct http_server *server;
    char answer[ANSWER_MAX];
};

static bool on_get(void *owner, const char *path, struct http_answer *answer)
{
    (void)owner;
    if (strcmp(path, "/hello") == 0) {
        strbuf_adds(&answer->body, "world\n");
        return true;
    }
    if (strcmp(path, "/large") == 0) {
        static const char kib[1025] = {[0 ... 1023] = 'x'};

        for (size_t i = 0; i < LARGE_KIB; i++) {
            strbuf_adds(&answer->body, kib);
        }
        larges++;
        return true;
    }
    if (strcmp(path, "/ill") == 0) {
        answer->status = 503;
        strbuf_adds(&answer->body, "no device\n");
        return true;
    }
    return false;
}

static void open_server(struct fixture *fixture, uint64_t timeout_ms)
{
    struct http_server_config config = {
        .address = "127.0.0.1:0", .timeout_ms = timeout_ms, .on_get = on_get};
    struct err err = ERR_INIT;

    assert_int_equal(http_server_create(&fixture->server, &fixture->loop, &config, &err), 0);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    open_server(fixture, 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    http_server_close(fixture->server);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    free(fixture);
    return 0;
}

static int dial(const struct fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *port = strrchr(http_server_url(fixture->server), ':') + 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void send_text(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

// Reads until the server has shut its side, turning the loop meanwhile.
static const char *receive(struct fixture *fixture, int fd)
{
    size_t len = 0;
    ssize_t got = -1;

    while (got != 0) {
        (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
        got = recv(fd, fixture->answer + len, ANSWER_MAX - 1 - len, MSG_DONTWAIT);
        assert_true(got >= 0 || errno == EAGAIN || errno == ECONNRESET);
        if (got < 0 && errno == ECONNRESET) {
            got = 0;
        }
        len += got > 0 ? (size_t)got : 0;
    }
    fixture->answer[len] = '\0';
    close(fd);
    return fixture->answer;
}

static const char *ask(struct fixture *fixture, const char *request)
{
    int fd = dial(fixture);

    send_text(fd, request);
    return receive(fixture, fd);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void a_get_is_answered(void **state)
{
    struct fixture *fixture = *state;
    const char *answer = ask(fixture, "GET /hello?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");

    assert_true(begins(answer, "HTTP/1.1 200 OK\r\n"));
    assert_non_null(strstr(answer, "Content-Length: 6\r\n"));
    assert_non_null(strstr(answer, "\r\n\r\nworld\n"));
    assert_true(begins(ask(fixture, "GET /hello HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 "));
}

static void the_callee_chooses_the_status(void **state)
{
    struct fixture *fixture = *state;
    const char *answer = ask(fixture, "GET /ill HTTP/1.1\r\nHost: 127.0.0.1:7412\r\n\r\n");

    assert_true(begins(answer, "HTTP/1.1 503 Service Unavailable\r\n"));
    assert_non_null(strstr(answer, "no device"));
    assert_true(begins(ask(fixture, "GET /none HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
                       "HTTP/1.1 404 Not Found\r\n"));
}

static void what_is_no_plain_get_is_refused(void **state)
{
    static const struct {
        const char *request;
        unsigned status;
    } row[] = {
        {"POST /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 405},
        {"GET /hello HTTP/1.1\r\n\r\n", 400},
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400},
        {"GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421},
        {"GET /hello HTTP/1.1\r\nHost: evil.example:7412\r\n\r\n", 421},
        {"GET /hello HTTP/1.1\r\nHost : localhost\r\n\r\n", 400},
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n", 400},
        {"GET /hello HTTP/1.1\nHost: localhost\n\r\n\r\n", 400},
        {"GET hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
        {"GET /hello HTTP/2.0\r\nHost: localhost\r\n\r\n", 505},
        {"GET /hello\r\n\r\n", 400},
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde", 400},
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"\x16\x03\x01 hello\r\n\r\n", 400},
    };
    struct fixture *fixture = *state;
    char want[32];

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        snprintf(want, sizeof(want), "HTTP/1.1 %u ", row[i].status);
        if (!begins(ask(fixture, row[i].request), want)) {
            fail_msg("%s: %s", row[i].request, fixture->answer);
        }
    }
    assert_true(
        begins(ask(fixture, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 200 "));
}

static void a_long_head_is_refused(void **state)
{
    struct fixture *fixture = *state;
    char *request = malloc(2 * HTTP_HEAD_MAX);

    snprintf(request, 2 * HTTP_HEAD_MAX, "GET /%0*d HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, 0);
    assert_true(begins(ask(fixture, request), "HTTP/1.1 414 "));
    snprintf(request, 2 * HTTP_HEAD_MAX, "GET / HTTP/1.1\r\nHost: localhost\r\nX: %0*d",
             HTTP_HEAD_MAX, 0);
    assert_true(begins(ask(fixture, request), "HTTP/1.1 431 "));
    free(request);
}

static void pieces_are_put_together(void **state)
{
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct fixture *fixture = *state;
    int fd = dial(fixture);

    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        assert_int_equal(send(fd, &request[i], 1, 0), 1);
        (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    (void)shutdown(fd, SHUT_WR);
    assert_true(begins(receive(fixture, fd), "HTTP/1.1 200 "));
}

static void an_incomplete_request_is_closed_after_the_time_limit(void **state)
{
    struct fixture *fixture = *state;

    http_server_close(fixture->server);
    open_server(fixture, 20);
    int fd = dial(fixture);
    send_text(fd, "GET /hel");
    assert_string_equal(receive(fixture, fd), "");
}

// Whoever holds all connections keeps nobody out.
static void a_connection_too_many_takes_the_place_of_the_oldest(void **state)
{
    struct fixture *fixture = *state;
    int fd[HTTP_CONNECTIONS_MAX];

    for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
        fd[i] = dial(fixture);
    }
    int last = dial(fixture); // accepted last
    send_text(last, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(begins(receive(fixture, last), "HTTP/1.1 200 "));
    assert_string_equal(receive(fixture, fd[0]), "");
    send_text(fd[1], "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(begins(receive(fixture, fd[1]), "HTTP/1.1 200 "));
    for (size_t i = 2; i < HTTP_CONNECTIONS_MAX; i++) {
        close(fd[i]);
    }
}

// Answers that nobody reads do not pile up: further ones are made when there is room again.
static void unread_answers_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    int fd[HTTP_CONNECTIONS_MAX];

    larges = 0;
    for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
        fd[i] = dial(fixture);
        send_text(fd[i], "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    for (int i = 0; i < 1000; i++) {
        (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    }
    // The kernel takes some of what is sent, and one answer more than fits may be made.
    assert_true(larges > 0 && larges < HTTP_CONNECTIONS_MAX / 2);
    for (size_t i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
        close(fd[i]);
    }
    int fresh = dial(fixture);
    send_text(fresh, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_true(begins(receive(fixture, fresh), "HTTP/1.1 200 "));
}

static void only_loopback_is_listened_on(void **state)
{
    static const struct {
        const char *address;
        enum err_code code;
    } row[] = {{"0.0.0.0:0", ERR_DENIED}, {"127.0.0.1", ERR_INVALID}, {"", ERR_INVALID}};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct http_server_config config = {.address = row[i].address, .on_get = on_get};
        struct http_server *server = NULL;
        struct err err = ERR_INIT;

        assert_int_equal(http_server_create(&server, &fixture->loop, &config, &err), row[i].code);
        assert_null(server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_get_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_callee_chooses_the_status, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_no_plain_get_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_head_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pieces_are_put_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_incomplete_request_is_closed_after_the_time_limit,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_connection_too_many_takes_the_place_of_the_oldest, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(unread_answers_are_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_loopback_is_listened_on, set_up, tear_down),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
