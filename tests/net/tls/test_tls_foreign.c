// A caller over TLS that shows its token in its requests, as a client of nng's has to: it makes its
// connection again whenever it likes, and sends first what it has to send.
#include "tests/net/tls_fixture.h"

struct caller_end {
    struct tls_fixture *s;
    struct stream *stream;
    bool greeted;
    bool ended;
    size_t replies;
    char error[64]; // of the last reply
    char why[256];  // why it has ended
};

static void on_greeted(void *owner)
{
    ((struct caller_end *)owner)->greeted = true;
}

static bool on_reply(void *owner, const struct frames_view *frame)
{
    struct caller_end *end = owner;
    struct reply reply;

    assert_int_equal(message_read(&reply_message, &reply, frame->data, frame->len, NULL), 0);
    (void)snprintf(end->error, sizeof(end->error), "%s", reply.error ? reply.error : "");
    end->replies++;
    message_clear(&reply_message, &reply);
    return true;
}

static void on_ended(void *owner, const struct err *why)
{
    struct caller_end *end = owner;

    end->ended = true;
    (void)snprintf(end->why, sizeof(end->why), "%s", why->text);
}

static void open_caller(struct tls_fixture *s, struct caller_end *end)
{
    struct err err = ERR_INIT;
    struct tls *tls = try_tls(s, "ours", "alice", &err);
    struct stream_config config = {.message_max = 1 << 20,
                                   .tls = tls,
                                   .tls_host = "127.0.0.1",
                                   .on_greeting = on_greeted,
                                   .on_frame = on_reply,
                                   .on_end = on_ended,
                                   .owner = end};
    struct url url;
    struct sockaddr_storage to;

    *end = (struct caller_end){.s = s};
    assert_int_equal(url_parse(&url, service_url(s->f.service), &err), 0);
    assert_true(url_address(&url, &to));
    end->stream = stream_connect(&s->f.loop, (const struct sockaddr *)&to, &config);
    tls_release(tls);
    while (!end->greeted && !end->ended) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    assert_true(end->greeted);
}

// Sends a request with this token and len bytes of a blob, and runs the loop until it is answered
// or the connection has ended.
static void send_put(struct caller_end *end, const char *token, size_t len)
{
    struct request request = {.op = OP_BLOB_PUT, .token = (char *)(uintptr_t)token};
    struct blob_put put = {.digest = digest_of("x", 1), .data = {end->s->f.blob_data, len}};
    struct strbuf frame = STRBUF_INIT;
    size_t replies = end->replies;

    frame_begin_request(&frame, 1);
    assert_int_equal(request_pack(&frame, &request, &blob_put_message, &put, NULL), 0);
    frame_end(&frame);
    stream_send(end->stream, &frame);
    while (end->replies == replies && !end->ended) {
        (void)uv_run(&end->s->f.loop, UV_RUN_ONCE);
    }
}

static void close_caller(struct caller_end *end)
{
    if (!end->ended) {
        stream_close(end->stream);
    }
    (void)uv_run(&end->s->f.loop, UV_RUN_NOWAIT);
}

static void a_large_first_request_is_read_for_its_token(void **state)
{
    struct tls_fixture *s = *state;
    struct caller_end end;

    open_caller(s, &end);
    send_put(&end, s->submit_token, 300000);
    assert_string_equal(end.error, "unsupported"); // the handler got it
    assert_false(end.ended);
    send_put(&end, NULL, 300000); // a caller that has shown its token once is known
    assert_int_equal(end.replies, 2);
    assert_string_equal(end.error, "unsupported");
    close_caller(&end);
    assert_int_equal(service_refusal_count(s->f.service), 0);
}

static void each_request_may_carry_a_token(void **state)
{
    struct tls_fixture *s = *state;
    struct caller_end end;

    open_caller(s, &end);
    send_put(&end, NULL, 10);
    assert_string_equal(end.error, "denied");
    assert_non_null(strstr(s->f.refusal, "no token was shown"));
    send_put(&end, s->submit_token, 10);
    assert_string_equal(end.error, "unsupported");
    send_put(&end, s->observe_token, 10); // another caller on the same connection
    assert_string_equal(end.error, "denied");
    send_put(&end, s->submit_token, 10);
    assert_string_equal(end.error, "unsupported");
    close_caller(&end);
}

// Whoever has no valid token may not send much, whatever it claims.
static void a_large_first_request_without_a_valid_token_ends(void **state)
{
    static const struct {
        const char *token;
        size_t len;
        const char *refusal;
    } bad[] = {
        {NULL, 300000, "and 65536 are allowed"},
        {"kcast_nonsense", 300000, "token"},
        {"", 300000, "token"},
        {NULL, 2 << 20, "and 65536 are allowed"},
    };
    struct tls_fixture *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct caller_end end;

        service_close(s->f.service); // one calls on_refusal once a second at most
        open_tls_service(s);
        open_caller(s, &end);
        send_put(&end, bad[i].token, bad[i].len);
        while (!end.ended) {
            (void)uv_run(&s->f.loop, UV_RUN_ONCE);
        }
        assert_int_equal(end.replies, 0);
        while (service_refusal_count(s->f.service) == 0) {
            (void)uv_run(&s->f.loop, UV_RUN_ONCE);
        }
        if (!strstr(s->f.refusal, bad[i].refusal)) {
            fail_msg("\"%s\" instead of \"%s\"", s->f.refusal, bad[i].refusal);
        }
        close_caller(&end);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(a_large_first_request_is_read_for_its_token),
        TLS_TEST(each_request_may_carry_a_token),
        TLS_TEST(a_large_first_request_without_a_valid_token_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
