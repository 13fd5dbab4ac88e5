// Callers that are not ours: what clients of nng's do and what callers of an older release do, with
// bare sockets. tests/e2e/test_nng.sh has the real ones.
#include "tests/net/fixture.h"

#include "net/rpc/old_framing.h"
#include "net/rpc/remote_state.h"

static struct fixture *greeted(void **state, int *ret_fd)
{
    struct fixture *f = *state;

    *ret_fd = raw_connect(f);
    raw_greet(f, *ret_fd);
    raw_expect_greeting(f, *ret_fd);
    return f;
}

// --- requests under nng's rules

// A REQ socket sends its request again when it has waited for long. It gets one reply.
static void a_request_that_is_sent_again_is_answered_once(void **state)
{
    int fd;
    struct fixture *f = greeted(state, &fd);

    raw_request(f, fd, OP_WAIT, 1);
    run_until_held(f, 1);
    for (int i = 0; i < 20; i++) {
        raw_request(f, fd, OP_WAIT, 1);
    }
    raw_request(f, fd, OP_STATUS, 2);
    assert_int_equal(raw_reply(f, fd), 2); // so those before it were read
    assert_int_equal(f->held_count, 1);
    answer_held(f, 0);
    raw_request(f, fd, OP_STATUS, 3);
    assert_int_equal(raw_reply(f, fd), 1);
    assert_int_equal(raw_reply(f, fd), 3);
    // When it was answered, it is asked anew: the reply may be on its way, or lost.
    raw_request(f, fd, OP_WAIT, 1);
    run_until_held(f, 2);
    answer_held(f, 1);
    assert_int_equal(raw_reply(f, fd), 1);
    close(fd);
}

// The numbers are each connection's own.
static void the_same_number_on_another_connection_is_another_request(void **state)
{
    int fd[2];
    struct fixture *f = greeted(state, &fd[0]);

    (void)greeted(state, &fd[1]);
    for (size_t i = 0; i < 2; i++) {
        raw_request(f, fd[i], OP_WAIT, 1);
        run_until_held(f, i + 1);
    }
    for (size_t i = 0; i < 2; i++) {
        answer_held(f, i);
        assert_int_equal(raw_reply(f, fd[i]), 1);
        close(fd[i]);
    }
}

// A request that has come through devices carries their words, by which its reply finds its way
// back.
static void the_header_comes_back_as_it_was(void **state)
{
    static const unsigned char headers[][FRAMES_HEADER_MAX] = {
        {0x80, 0, 0, 1},
        {0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 1},
        {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0,    0,    0,    4,
         0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff},
    };
    static const size_t header_len[] = {4, 8, 32};
    int fd;
    struct fixture *f = greeted(state, &fd);

    for (size_t i = 0; i < ARRAY_LEN(headers); i++) { // they differ by the words of devices too
        struct strbuf frame = STRBUF_INIT;
        struct request request = {.op = OP_WAIT};

        frame_begin(&frame, headers[i], header_len[i]);
        assert_int_equal(request_pack(&frame, &request, NULL, NULL, NULL), 0);
        frame_end(&frame);
        raw_send(f, fd, frame.data, frame.len);
        run_until_held(f, i + 1);
        strbuf_release(&frame);
    }
    for (size_t i = ARRAY_LEN(headers); i-- > 0;) {
        size_t len;

        answer_held(f, i);
        unsigned char *frame = raw_frame(f, fd, &len);
        assert_true(len > header_len[i]);
        assert_memory_equal(frame, headers[i], header_len[i]);
        assert_int_equal(frame[header_len[i]] & 0xf0, 0x80); // a map
        free(frame);
    }
    close(fd);
}

// Some read before they write. nng itself does both at once.
static void a_caller_that_waits_for_our_greeting_gets_it(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f);

    raw_expect_greeting(f, fd);
    raw_greet(f, fd);
    raw_request(f, fd, OP_STATUS, 1);
    assert_int_equal(raw_reply(f, fd), 1);
    close(fd);
}

static void numbers_go_round(void **state)
{
    struct fixture *f = *state;

    call_wait(f, CALL_MS); // its number is taken
    run_until_held(f, 1);
    f->remote->last_id = UINT32_MAX - 1;
    for (int i = 0; i < 4; i++) {
        expect_success(f);
    }
    assert_int_equal(f->remote->last_id, FRAMES_REQUEST | 3); // 0xffffffff, 0, 2 and 3
    answer_held(f, 0);
    run_until(f, 5);
    assert_int_equal(f->successes, 5);
}

// --- the framing of before

// What a caller of before sends first: its greeting, then HELLO as a frame of its own.
static void send_old_hello(struct fixture *f, int fd, uint64_t id)
{
    struct strbuf bytes = STRBUF_INIT;
    struct request request = {.version = 1, .op = OP_HELLO, .id = id};

    strbuf_add(&bytes, old_framing_greeting, sizeof(old_framing_greeting));
    strbuf_add(&bytes, "\0\0\0\0", OLD_FRAMING_LENGTH_LEN);
    size_t at = bytes.len;
    assert_int_equal(message_pack(&request_message, &request, &bytes, NULL), 0);
    bytes.data[at - OLD_FRAMING_LENGTH_LEN] = (char)(bytes.len - at);
    raw_send(f, fd, bytes.data, bytes.len);
    strbuf_release(&bytes);
}

static void a_caller_of_before_is_told_in_its_own_framing(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f);

    send_old_hello(f, fd, 4711);
    unsigned char bytes[sizeof(old_framing_greeting) + OLD_FRAMING_LENGTH_LEN];
    assert_true(raw_read(f, fd, bytes, sizeof(bytes)));
    assert_memory_equal(bytes, old_framing_greeting, sizeof(old_framing_greeting));
    size_t len = old_framing_length(bytes + sizeof(old_framing_greeting));
    char *data = xmalloc(len);
    assert_true(raw_read(f, fd, data, len));
    struct reply reply;
    assert_int_equal(message_read(&reply_message, &reply, data, len, NULL), 0);
    assert_int_equal(reply.id, 4711);
    assert_string_equal(reply.error, "version");
    assert_non_null(strstr(reply.text, "speaks nng's protocol since release"));
    assert_non_null(strstr(reply.text, "bring both to the same release"));
    message_clear(&reply_message, &reply);
    free(data);
    raw_expect_end(f, fd);
    while (f->refusals == 0) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_string_equal(f->refusal, old_framing_reason);
    expect_success(f);
}

static void a_caller_of_before_that_sends_nonsense_is_told_too(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f);

    raw_send(f, fd, "KCAST\0\0\1\3\0\0\0abc", 15);
    unsigned char bytes[sizeof(old_framing_greeting) + OLD_FRAMING_LENGTH_LEN];
    assert_true(raw_read(f, fd, bytes, sizeof(bytes)));
    size_t len = old_framing_length(bytes + sizeof(old_framing_greeting));
    char *data = xmalloc(len);
    assert_true(raw_read(f, fd, data, len));
    struct reply reply;
    assert_int_equal(message_read(&reply_message, &reply, data, len, NULL), 0);
    assert_int_equal(reply.id, 0);
    assert_string_equal(reply.error, "version");
    message_clear(&reply_message, &reply);
    free(data);
    raw_expect_end(f, fd);
}

// Such a server greets at once.
static void a_server_of_before_is_named_in_the_error(void **state)
{
    struct fixture *f = *state;
    int listener = raw_listen(f);

    call_status(f);
    call_status(f);
    int fd = raw_accept(f, listener);
    raw_send(f, fd, old_framing_greeting, sizeof(old_framing_greeting));
    run_until(f, 2);
    assert_int_equal(f->last_error, ERR_VERSION);
    assert_non_null(strstr(f->last_text, "of an older release; bring both to the same release"));
    assert_non_null(strstr(f->last_text, remote_url(f->remote)));
    close(fd);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_that_is_sent_again_is_answered_once),
        TEST(the_same_number_on_another_connection_is_another_request),
        TEST(the_header_comes_back_as_it_was),
        TEST(a_caller_that_waits_for_our_greeting_gets_it),
        TEST(numbers_go_round),
        TEST(a_caller_of_before_is_told_in_its_own_framing),
        TEST(a_caller_of_before_that_sends_nonsense_is_told_too),
        TEST(a_server_of_before_is_named_in_the_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
