// The service or the remote against a bare socket that sends wrong, incomplete or slow bytes.
#include "tests/net/fixture.h"
#include "tests/support/until.h"

#include <sys/resource.h>

#define GREETING "\0SP\0\0\x30\0\0"  // of a caller
#define TWO_WORDS "\0\0\0\1\0\0\0\2" // of devices, without an end
#define EIGHT_WORDS TWO_WORDS TWO_WORDS TWO_WORDS TWO_WORDS

// --- a service and bare clients

// A wrong beginning closes its own connection, with a reason, and no other.
static void bytes_that_are_no_greeting_are_refused_at_once(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *reason;
    } bad[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 26, "no greeting of nng's protocol"},
        {"KCAST\0\1\1", 8, "no greeting of nng's protocol"},
        {"x", 1, "no greeting of nng's protocol"},
        {"\0SP\0\0\x31\0\0", 8, "of the kind REP (0x31), and only REQ is answered"},
        {"\0SP\0\0\x70\0\0", 8, "of the kind BUS (0x70), and only REQ is answered"},
        {"\0SP\0\x12\x34\0\0", 8, "of the kind unknown here (0x1234)"},
        {"\0SP\0\0\x30\0\1", 8, "its greeting does not end with two zeros"},
        {"\0SP\1\0\x30\0\0", 8, "no greeting of nng's protocol"},
        {GREETING "\0\0\0\0\0\0\0\0", 16, "a frame of 0 bytes without a request's number"},
        {GREETING "\0\0\0\0\0\0\0\7\0\0\0\1xyz", 23, "a frame of 7 bytes without a request's"},
        {GREETING "\0\0\0\0\0\0\1\0" EIGHT_WORDS, 48, "a header of more than 8 words"},
        {GREETING "\xff\xff\xff\xff\xff\xff\xff\xff\x80\0\0\1", 20,
         "a frame of 18446744073709551611 bytes, and 1048576 are allowed"},
        {GREETING "\0\0\0\0\0\x10\0\5\x80\0\0\1", 20,
         "a frame of 1048577 bytes, and 1048576 are allowed"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        reopen(f); // a service calls on_refusal once a second at most
        f->refusals = 0;
        int fd = raw_connect(f);
        raw_send(f, fd, bad[i].bytes, bad[i].len);
        raw_expect_end(f, fd);
        while (f->refusals == 0) {
            (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        }
        assert_non_null(strstr(f->refusal, bad[i].reason));
        expect_success(f);
    }
}

static void many_bad_connections_do_no_harm(void **state)
{
    struct fixture *f = *state;
    int fd[40];

    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        fd[i] = raw_connect(f);
        if (i % 4 == 1) {
            raw_send(f, fd[i], "GET / HTTP/1.1\r\n\r\n", 18);
        } else if (i % 4 == 2) {
            raw_send(f, fd[i], "\0SP", 3); // an incomplete greeting
        } else if (i % 4 == 3) {
            raw_greet(f, fd[i]);
            raw_send(f, fd[i], "\0\0\0\0\0\0\0\6\x80\0", 10); // an incomplete frame
        }
    }
    expect_success(f);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        close(fd[i]);
    }
    expect_success(f);
    assert_true(f->refusals >= 1);
}

static void bytes_may_come_one_by_one(void **state)
{
    struct fixture *f = *state;
    struct strbuf bytes = STRBUF_INIT;
    int fd = raw_connect(f);

    strbuf_add(&bytes, frames_greeting(FRAMES_CALLER), FRAMES_GREETING_LEN);
    add_request(&bytes, OP_STATUS, 1);
    add_request(&bytes, OP_STATUS, 2);
    for (size_t i = 0; i < bytes.len; i++) {
        raw_send(f, fd, bytes.data + i, 1);
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    raw_expect_greeting(f, fd);
    assert_int_equal(raw_reply(f, fd), 1);
    assert_int_equal(raw_reply(f, fd), 2);
    strbuf_release(&bytes);
    close(fd);
}

// A request that cannot be read is answered under its number, and the connection goes on.
static void a_frame_that_is_no_request_is_answered(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f);

    raw_greet(f, fd);
    raw_expect_greeting(f, fd);
    raw_send(f, fd,
             "\0\0\0\0\0\0\0\7\x80\0\0\5"
             "abc",
             15);
    struct reply reply;
    assert_int_equal(raw_reply_of(f, fd, &reply), 5);
    assert_string_equal(reply.error, "protocol");
    message_clear(&reply_message, &reply);
    raw_request(f, fd, OP_STATUS, 9);
    assert_int_equal(raw_reply(f, fd), 9);
    close(fd);
}

// Its requests stay unread once too many bytes of replies are unsent. Others are served meanwhile,
// and when it reads, it gets all replies.
static void a_client_that_does_not_read_is_not_read_from(void **state)
{
    enum { COUNT = 40 };
    struct fixture *f = *state;
    int fd = raw_connect(f);

    raw_greet(f, fd);
    raw_expect_greeting(f, fd);
    for (uint32_t id = 1; id <= COUNT; id++) {
        raw_request(f, fd, OP_BLOB_HAVE, id);
    }
    while (service_request_count(f->service) == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    for (int i = 0; i < 100; i++) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    // The kernel has taken some of the replies, so the exact count is not known.
    assert_true(service_request_count(f->service) < COUNT);
    expect_success(f);
    for (uint32_t id = 1; id <= COUNT; id++) {
        assert_int_equal(raw_reply(f, fd), id);
    }
    assert_int_equal(service_request_count(f->service), COUNT + 1);
    close(fd);
}

static void on_over(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

// The kernel of its host still answers. The test takes longer than a host may be silent.
static void a_client_that_does_not_read_keeps_its_connection(void **state)
{
    enum { COUNT = 8 };
    struct fixture *f = *state;
    int fd = raw_connect(f);

    raw_greet(f, fd);
    raw_expect_greeting(f, fd);
    for (uint32_t id = 1; id <= COUNT; id++) {
        raw_request(f, fd, OP_BLOB_HAVE, id);
    }
    uv_timer_t timer;
    (void)uv_timer_init(&f->loop, &timer);
    bool over = false;
    timer.data = &over;
    (void)uv_timer_start(&timer, on_over, 12000, 0);
    while (!over) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT); // its memory is free
    for (uint32_t id = 1; id <= COUNT; id++) {
        assert_int_equal(raw_reply(f, fd), id);
    }
    close(fd);
}

// When a connection ends, its parked requests are dropped at once, and the answers of the others go
// nowhere.
static void requests_of_a_closed_connection_are_dropped(void **state)
{
    struct fixture *f = *state;

    for (int round = 0; round < 3; round++) {
        int fd = raw_connect(f);

        f->held_count = 0;
        f->drops = 0;
        raw_greet(f, fd);
        for (uint32_t id = 1; id <= 4; id++) {
            raw_request(f, fd, OP_WAIT, id);
        }
        f->no_drop = false;
        run_until_held(f, 4);
        f->no_drop = true;
        raw_request(f, fd, OP_WAIT, 5); // stays until it is answered
        raw_request(f, fd, OP_ACK, 6);
        run_until_held(f, 6);
        f->no_drop = false;
        close(fd);
        while (f->drops < 4) {
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        }
        answer_held(f, 4);
        answer_held(f, 5);
        assert_int_equal(f->drops, 4);
        expect_success(f);
    }
    // Everything can be parked again.
    f->held_count = 0;
    for (int i = 0; i < 5; i++) {
        call_wait(f, CALL_MS);
    }
    run_until_held(f, 5);
}

// A connection that has greeted may be silent; one that has not is closed after greeting_ms.
static void silence_before_the_greeting_ends(void **state)
{
    struct fixture *f = *state;

    f->config.greeting_ms = 50;
    reopen(f);
    unsigned char bytes[FRAMES_GREETING_LEN];
    int idle;
    for (;;) { // on a slow machine this one may be too late as well
        idle = raw_connect(f);
        raw_greet(f, idle);
        raw_request(f, idle, OP_STATUS, 1);
        if (raw_read(f, idle, bytes, sizeof(bytes)) && raw_reply(f, idle) == 1) {
            break;
        }
        close(idle);
    }
    f->refusals = 0;
    int silent = raw_connect(f);
    raw_expect_end(f, silent);
    raw_request(f, idle, OP_STATUS, 2);
    assert_int_equal(raw_reply(f, idle), 2);
    close(idle);
}

static int raw_served(struct fixture *f)
{
    int fd = raw_connect(f);

    raw_greet(f, fd);
    raw_expect_greeting(f, fd);
    raw_request(f, fd, OP_STATUS, 1);
    assert_int_equal(raw_reply(f, fd), 1); // its greeting was read
    return fd;
}

// Whoever has nothing under way and was served longest ago gives way to the next one. So callers
// that hold every connection there is keep nobody out.
static void a_connection_too_many_takes_the_place_of_an_idle_one(void **state)
{
    struct fixture *f = *state;

    f->config.connections_max = 4;
    reopen(f);
    int fd[4];
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        fd[i] = raw_served(f);
    }
    raw_request(f, fd[0], OP_STATUS, 2);
    assert_int_equal(raw_reply(f, fd[0]), 2); // now 1 was served longest ago
    raw_request(f, fd[1], OP_ACK, 3);         // but has something under way
    run_until_held(f, 1);
    expect_success(f);
    assert_string_equal(f->refusal, "too many connections, and it was used longest ago");
    char byte;
    assert_false(raw_read(f, fd[2], &byte, 1));
    answer_held(f, 0);
    assert_int_equal(raw_reply(f, fd[1]), 3);
    raw_request(f, fd[3], OP_STATUS, 4);
    assert_int_equal(raw_reply(f, fd[3]), 4);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        close(fd[i]);
    }
}

// Without descriptors the loop sleeps and on_refusal is called once. The callers that wait are
// served when there are descriptors again.
static void without_descriptors_callers_wait_and_the_loop_sleeps(void **state)
{
    struct fixture *f = *state;

    expect_success(f); // everything that needs a descriptor has it
    int fd[3];
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        fd[i] = raw_connect(f);
        raw_send(f, fd[i], NULL, 0);
    }
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    while (f->refusals == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_non_null(strstr(f->refusal, "Too many open files"));
    for (int i = 0; i < 3; i++) { // three more attempts
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        assert_true(uv_backend_timeout(&f->loop) > 0);
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(f->refusals, 1);
    expect_success(f); // on the open connection
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (size_t i = 0; i < ARRAY_LEN(fd); i++) {
        raw_greet(f, fd[i]);
        raw_expect_greeting(f, fd[i]);
        raw_request(f, fd[i], OP_STATUS, 5);
        assert_int_equal(raw_reply(f, fd[i]), 5);
        close(fd[i]);
    }
}

// --- a remote and bare servers

static void a_server_of_another_protocol_is_named_in_the_error(void **state)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    struct fixture *f = *state;
    int listener = raw_listen(f);

    call_status(f);
    call_status(f);
    int fd = raw_accept(f, listener);
    raw_send(f, fd, answer, sizeof(answer) - 1);
    run_until(f, 2);
    assert_int_equal(f->last_error, ERR_PROTOCOL);
    assert_non_null(strstr(f->last_text, "does not speak kernelcast's protocol"));
    assert_non_null(strstr(f->last_text, "check --pool and --worker"));
    close(fd);
    close(listener);
}

// Before the other side has greeted, only our greeting is sent. So no call is lost with a
// connection that was never a connection to a server of ours.
static void a_call_is_not_sent_before_the_greeting(void **state)
{
    struct fixture *f = *state;
    int listener = raw_listen(f);

    call_status(f);
    int fd;
    for (int i = 0; i < 3; i++) {
        fd = raw_accept(f, listener);
        raw_expect_greeting_of(f, fd, FRAMES_CALLER);
        close(fd);
    }
    assert_int_equal(f->answers, 0);
    fd = raw_accept(f, listener);
    raw_greet_back(f, fd);
    raw_expect_greeting_of(f, fd, FRAMES_CALLER);
    raw_skip_request(f, fd);
    close(fd);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_UNREACHABLE);
    assert_non_null(strstr(f->last_text, "broke: "));
    close(listener);
}

static void pack_reply(struct strbuf *frame, uint32_t id)
{
    struct status status;

    message_init(&status_message, &status);
    frame_begin_request(frame, id);
    struct err err = ERR_INIT;
    assert_int_equal(reply_pack(frame, 1, &status_message, &status, &err), 0);
    frame_end(frame);
}

static void send_reply(struct fixture *f, int fd, uint32_t id)
{
    struct strbuf frame = STRBUF_INIT;

    pack_reply(&frame, id);
    raw_send(f, fd, frame.data, frame.len);
    strbuf_release(&frame);
}

static void replies_are_matched_by_id(void **state)
{
    struct fixture *f = *state;
    int listener = raw_listen(f);

    call_status(f);
    call_status(f);
    int fd = raw_accept(f, listener);
    raw_greet_back(f, fd);
    raw_expect_greeting_of(f, fd, FRAMES_CALLER);
    raw_skip_request(f, fd);
    raw_skip_request(f, fd);
    send_reply(f, fd, 4711); // no call has this id
    send_reply(f, fd, 2);
    run_until(f, 1);
    send_reply(f, fd, 2); // the same reply again
    send_reply(f, fd, 1);
    run_until(f, 2);
    assert_int_equal(f->successes, 2);
    close(fd);
    close(listener);
}

// A reply that arrived while the program was busy elsewhere is in time, even when it is read after
// the deadline.
static void a_reply_that_has_arrived_counts(void **state)
{
    struct fixture *f = *state;
    int listener = raw_listen(f);

    call_status(f);
    int fd = raw_accept(f, listener);
    raw_greet_back(f, fd);
    raw_expect_greeting_of(f, fd, FRAMES_CALLER);
    raw_skip_request(f, fd);
    send_reply(f, fd, 1);
    run_until(f, 1);
    for (uint32_t id = 2; id < 12; id++) {
        call(f, OP_STATUS, NULL, NULL, &status_message, 2);
        uint64_t deadline_ns = uv_hrtime() + UINT64_C(2000000);
        struct strbuf frame = STRBUF_INIT;
        pack_reply(&frame, id);
        assert_int_equal(send(fd, frame.data, frame.len, 0), frame.len);
        UNTIL(uv_hrtime() > deadline_ns); // and the loop has not run
        run_until(f, (int)id);
        assert_int_equal(f->last_error, ERR_NONE);
        strbuf_release(&frame);
    }
    close(fd);
    close(listener);
}

static void an_invalid_reply_ends_the_connection(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *text;
    } bad[] = {
        {"\0\0\0\0\0\0\0\7\x80\0\0\1"
         "abc",
         15, "sent no valid reply"},
        {"\0\0\0\0\0\0\0\0", 8, "a frame of 0 bytes without a request's number"},
        {"\xff\0\0\0\0\0\0\0\x80\0\0\1", 12, "bytes, and 17825792 are allowed"},
        {"\0\0\0\0\0\0\0\x0b\0\0\0\2\x80\0\0\1\x81\1\1", 19, "a header that no request had"},
    };
    struct fixture *f = *state;
    int listener = raw_listen(f);

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        f->answers = 0;
        call_status(f);
        call_status(f);
        int fd = raw_accept(f, listener);
        raw_greet_back(f, fd);
        raw_expect_greeting_of(f, fd, FRAMES_CALLER);
        raw_skip_request(f, fd);
        raw_send(f, fd, bad[i].bytes, bad[i].len);
        run_until(f, 2);
        assert_int_equal(f->last_error, ERR_PROTOCOL);
        assert_non_null(strstr(f->last_text, bad[i].text));
        close(fd);
    }
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(bytes_that_are_no_greeting_are_refused_at_once),
        TEST(many_bad_connections_do_no_harm),
        TEST(bytes_may_come_one_by_one),
        TEST(a_frame_that_is_no_request_is_answered),
        TEST(a_client_that_does_not_read_is_not_read_from),
        TEST(a_client_that_does_not_read_keeps_its_connection),
        TEST(requests_of_a_closed_connection_are_dropped),
        TEST(silence_before_the_greeting_ends),
        TEST(a_connection_too_many_takes_the_place_of_an_idle_one),
        TEST(without_descriptors_callers_wait_and_the_loop_sleeps),
        TEST(a_server_of_another_protocol_is_named_in_the_error),
        TEST(a_call_is_not_sent_before_the_greeting),
        TEST(replies_are_matched_by_id),
        TEST(a_reply_that_has_arrived_counts),
        TEST(an_invalid_reply_ends_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
