// A service and a remote in one loop on loopback, and bare sockets that talk to one of the two.
// Nothing sleeps: the helpers turn the loop until what they wait for has happened.
#ifndef TESTS_NET_FIXTURE_H
#define TESTS_NET_FIXTURE_H

#include "common/digest.h"
#include "common/mem.h"
#include "net/rpc/frames.h"
#include "net/rpc/remote.h"
#include "net/rpc/service.h"
#include "net/url.h"
#include "tests/support/own_url.h"
#include "tests/support/until.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
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

#define HELD_MAX 2048
#define CALL_MS 100000             // a deadline far beyond what a test takes
#define BLOB_LEN ((size_t)4 << 20) // bytes of a reply to BLOB_HAVE

struct fixture {
    uv_loop_t loop;
    struct service *service;
    struct service_config config; // for the next open_service
    struct remote *remote;
    struct exchange *held[HELD_MAX]; // parked or not answered by the handler, oldest first
    size_t held_count;
    size_t drops;
    bool no_drop; // WAITs are parked without on_drop
    size_t refusals;
    char refusal[256]; // the last reason given to on_refusal
    int answers;
    int successes;
    enum err_code last_error;
    char last_text[512];
    unsigned char *blob_data; // BLOB_LEN + 1 bytes
};

static inline void on_drop(void *waiter)
{
    ((struct fixture *)waiter)->drops++;
}

static inline void answer_status(struct exchange *exchange, const struct request *request)
{
    struct status_request body;
    struct status status;

    if (exchange_read_body(exchange, request, &status_request_message, &body)) {
        message_init(&status_message, &status);
        status.waits = body.jobs_count;
        exchange_reply(exchange, &status_message, &status);
        message_clear(&status_request_message, &body);
    }
}

// STATUS is answered at once, WAIT is parked, ACK is held without being parked, BLOB_HAVE is
// answered with BLOB_LEN bytes, and everything else fails.
static inline void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    static const char *const features[] = {"one", "two"};
    struct fixture *f = owner;
    struct err err = ERR_INIT;
    struct waited none = {0};

    if (request->op == OP_HELLO) {
        exchange_hello(exchange, request, "kcastd", features, 2, 20000, NULL);
    } else if (request->op == OP_STATUS) {
        answer_status(exchange, request);
    } else if (request->op == OP_BLOB_HAVE) {
        struct blob_put put = {.digest = digest_of("x", 1), .data = {f->blob_data, BLOB_LEN}};

        exchange_reply(exchange, &blob_put_message, &put);
    } else if (request->op == OP_ACK) {
        f->held[f->held_count++] = exchange;
    } else if (request->op == OP_WAIT) {
        if (exchange_park(exchange, 0, f->no_drop ? NULL : on_drop, f)) {
            f->held[f->held_count++] = exchange;
        } else {
            exchange_reply(exchange, &waited_message, &none);
        }
    } else {
        (void)err_set(&err, ERR_UNSUPPORTED, "operation %llu is not known here",
                      (unsigned long long)request->op);
        exchange_fail_busy(exchange, &err, 123);
    }
}

static inline void on_refusal(void *owner, const char *peer, const char *reason, uint64_t untold)
{
    struct fixture *f = owner;

    (void)peer;
    (void)untold;
    f->refusals++;
    (void)snprintf(f->refusal, sizeof(f->refusal), "%s", reason);
}

static inline void open_service(struct fixture *f, const char *url)
{
    f->config.url = url;
    struct err err = ERR_INIT;
    if (service_create(&f->service, &f->loop, &f->config, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

// Replaces the service by one with the present config, and the remote by a new one.
static inline void reopen(struct fixture *f)
{
    remote_close(f->remote);
    service_close(f->service);
    open_service(f, own_url());
    struct err err = ERR_INIT;
    assert_int_equal(remote_create(&f->remote, &f->loop, service_url(f->service), &err), 0);
}

static inline int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->config = (struct service_config){.exchanges_max = 8,
                                        .parked_max = 5,
                                        .message_max = 1 << 20,
                                        .epoch = 77,
                                        .on_request = on_request,
                                        .on_refusal = on_refusal,
                                        .owner = f};
    f->blob_data = xcalloc(1, BLOB_LEN + 1);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    open_service(f, own_url());
    struct err err = ERR_INIT;
    assert_int_equal(remote_create(&f->remote, &f->loop, service_url(f->service), &err), 0);
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;

    remote_close(f->remote);
    service_close(f->service);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f->blob_data);
    free(f);
    return 0;
}

// --- calls

static inline void on_answer(void *owner, const struct err *error, uint64_t retry, void *reply)
{
    struct fixture *f = owner;

    (void)retry;
    (void)reply;
    f->answers++;
    f->successes += !error;
    f->last_error = error ? error->code : ERR_NONE;
    (void)snprintf(f->last_text, sizeof(f->last_text), "%s", error ? error->text : "");
}

static inline void call(struct fixture *f, enum op op, const struct message *message,
                        const void *body, const struct message *answer, uint64_t deadline_ms)
{
    remote_call(f->remote, op, message, body, answer, deadline_ms, on_answer, f);
}

static inline void call_status(struct fixture *f)
{
    struct status_request body = {0};

    call(f, OP_STATUS, &status_request_message, &body, &status_message, CALL_MS);
}

static inline void call_wait(struct fixture *f, uint64_t deadline_ms)
{
    uint64_t job = 1;
    struct wait wait = {.jobs = &job, .jobs_count = 1};

    call(f, OP_WAIT, &wait_message, &wait, &waited_message, deadline_ms);
}

static inline void run_until(struct fixture *f, int answers)
{
    while (f->answers < answers) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static inline void run_until_held(struct fixture *f, size_t count)
{
    while (f->held_count < count) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static inline void expect_success(struct fixture *f)
{
    int answers = f->answers;

    call_status(f);
    run_until(f, answers + 1);
    assert_string_equal(f->last_text, "");
    assert_int_equal(f->last_error, ERR_NONE);
}

static inline void answer_held(struct fixture *f, size_t at)
{
    struct waited none = {0};

    exchange_reply(f->held[at], &waited_message, &none);
}

// --- a bare socket as the client

static inline int raw_connect(const struct fixture *f)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    int on = 1;
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    struct err err = ERR_INIT;
    struct url url;
    assert_int_equal(url_parse(&url, service_url(f->service), &err), 0);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(url.port), .sin_addr.s_addr = inet_addr(url.host)};
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static inline void raw_send(struct fixture *f, int fd, const void *data, size_t len)
{
    const char *from = data;

    while (len > 0) {
        ssize_t sent = send(fd, from, len, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent >= 0) {
            from += sent;
            len -= (size_t)sent;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return; // the service has closed it already, which most of these tests expect
        } else {
            assert_int_equal(errno, EAGAIN);
        }
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
}

// Reads len bytes; returns false when the connection was closed before that.
static inline bool raw_read(struct fixture *f, int fd, void *ret, size_t len)
{
    char *to = ret;

    while (len > 0) {
        ssize_t got = recv(fd, to, len, MSG_DONTWAIT);

        if (got > 0) {
            to += got;
            len -= (size_t)got;
        } else if (got == 0 || errno != EAGAIN) {
            return false;
        } else {
            struct pollfd wait = {.fd = fd, .events = POLLIN};

            (void)uv_run(&f->loop, UV_RUN_NOWAIT);
            (void)poll(&wait, 1, 1);
        }
    }
    return true;
}

// Expects a greeting at most and then nothing but the end of the connection.
static inline void raw_expect_end(struct fixture *f, int fd)
{
    char bytes[2 * FRAMES_GREETING_LEN];

    assert_false(raw_read(f, fd, bytes, sizeof(bytes)));
    close(fd);
}

static inline void raw_expect_greeting_of(struct fixture *f, int fd, enum frames_side side)
{
    unsigned char bytes[FRAMES_GREETING_LEN];

    assert_true(raw_read(f, fd, bytes, sizeof(bytes)));
    assert_memory_equal(bytes, frames_greeting(side), sizeof(bytes));
}

static inline void raw_expect_greeting(struct fixture *f, int fd)
{
    raw_expect_greeting_of(f, fd, FRAMES_SERVER);
}

static inline void raw_greet(struct fixture *f, int fd)
{
    raw_send(f, fd, frames_greeting(FRAMES_CALLER), FRAMES_GREETING_LEN);
}

// Appends a request without a body, as a frame with this number.
static inline void add_request(struct strbuf *to, enum op op, uint32_t id)
{
    struct strbuf frame = STRBUF_INIT;
    struct request request = {.op = op};

    frame_begin_request(&frame, id);
    struct err err = ERR_INIT;
    assert_int_equal(request_pack(&frame, &request, NULL, NULL, &err), 0);
    frame_end(&frame);
    strbuf_add(to, frame.data, frame.len);
    strbuf_release(&frame);
}

static inline void raw_request(struct fixture *f, int fd, enum op op, uint32_t id)
{
    struct strbuf frame = STRBUF_INIT;

    add_request(&frame, op, id);
    raw_send(f, fd, frame.data, frame.len);
    strbuf_release(&frame);
}

// Reads the next frame, which the caller frees.
static inline unsigned char *raw_frame(struct fixture *f, int fd, size_t *ret_len)
{
    unsigned char head[FRAMES_LENGTH_LEN];

    assert_true(raw_read(f, fd, head, sizeof(head)));
    *ret_len = 0;
    for (size_t i = 0; i < sizeof(head); i++) {
        *ret_len = *ret_len << 8 | head[i];
    }
    unsigned char *data = xmalloc(*ret_len);
    assert_true(raw_read(f, fd, data, *ret_len));
    return data;
}

// Reads the next reply, to a request with a header of one word. Returns the request's number.
// *ret is cleared by the caller; NULL: only the number is of interest.
static inline uint32_t raw_reply_of(struct fixture *f, int fd, struct reply *ret)
{
    size_t len;
    unsigned char *data = raw_frame(f, fd, &len);
    struct err err = ERR_INIT;
    struct reply reply;

    assert_true(len > FRAMES_WORD_LEN);
    assert_true(data[0] & 0x80);
    uint32_t id = (uint32_t)(data[0] & 0x7f) << 24 | (uint32_t)data[1] << 16 |
                  (uint32_t)data[2] << 8 | data[3];
    if (message_read(&reply_message, &reply, data + FRAMES_WORD_LEN, len - FRAMES_WORD_LEN, &err) !=
        0) {
        fail_msg("%s", err.text);
    }
    free(data);
    if (ret) {
        *ret = reply;
    } else {
        message_clear(&reply_message, &reply);
    }
    return id;
}

static inline uint32_t raw_reply(struct fixture *f, int fd)
{
    return raw_reply_of(f, fd, NULL);
}

// --- a bare socket as the server

// Listens on 127.0.0.1 and replaces the fixture's remote by one that calls there.
static inline int raw_listen(struct fixture *f)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    char url[64];
    (void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    remote_close(f->remote);
    struct err err = ERR_INIT;
    assert_int_equal(remote_create(&f->remote, &f->loop, url, &err), 0);
    return fd;
}

static inline void raw_greet_back(struct fixture *f, int fd)
{
    raw_send(f, fd, frames_greeting(FRAMES_SERVER), FRAMES_GREETING_LEN);
}

static inline int raw_accept(struct fixture *f, int listener)
{
    int fd;

    UNTIL(((void)uv_run(&f->loop, UV_RUN_NOWAIT),
           (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0));
    return fd;
}

// Reads the next request and forgets it.
static inline void raw_skip_request(struct fixture *f, int fd)
{
    size_t len;

    free(raw_frame(f, fd, &len));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
