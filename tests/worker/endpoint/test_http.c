// One request to a server that answers well, badly or not at all: each case has a stated outcome,
// and the key is in none of them.
#include "tests/worker/endpoint/http_rig.h"

// ---- what works ----

static void an_answer_comes_with_what_matters(void **state)
{
    struct stub_reply reply = {.status = 429,
                               .headers = "Retry-After: 7\r\nX-RateLimit-Reset-Tokens: 6m0s\r\n"
                                          "x-ratelimit-remaining-tokens: 0\r\nX-Other: " KEY "\r\n",
                               .body = "{\"ok\":1}"};

    (void)state;
    struct rig rig;
    open_rig(&rig, &reply, 1, NULL);
    struct end outcome = post_to(&rig, stub_url(rig.stub), PATIENT_MS);
    expect(&outcome, ERR_NONE, "");
    assert_int_equal(outcome.reply.status, 429);
    assert_true(outcome.reply.sent);
    assert_true(outcome.reply.seconds > 0);
    assert_string_equal(outcome.body, "{\"ok\":1}");
    assert_string_equal(outcome.reply.headers,
                        "content-type: application/json\nretry-after: 7\n"
                        "x-ratelimit-reset-tokens: 6m0s\nx-ratelimit-remaining-tokens: 0\n");
    assert_non_null(strstr(rig.script.head[0], "POST /v1 HTTP/1.1\r\n"));
    assert_non_null(strstr(rig.script.head[0], "Authorization: Bearer " KEY "\r\n"));
    assert_non_null(strstr(rig.script.head[0], "User-Agent: test/1\r\n"));
    assert_null(strstr(rig.script.head[0], "Expect:"));
    assert_non_null(strstr(rig.script.head[0], "\n" BODY));
    close_rig(&rig);
}

static void a_connection_is_used_again(void **state)
{
    (void)state;
    struct stub_reply reply = {.status = 200, .body = "{}"};
    struct rig rig;
    open_rig(&rig, &reply, 1, NULL);
    for (int i = 0; i < 5; i++) {
        struct end outcome = post_to(&rig, stub_url(rig.stub), PATIENT_MS);

        expect(&outcome, ERR_NONE, "");
    }
    assert_int_equal(stub_requests(rig.stub), 5);
    assert_int_equal(stub_connections(rig.stub), 1);
    close_rig(&rig);
}

static void without_a_body_it_is_a_get(void **state)
{
    (void)state;
    struct stub_reply reply = {.status = 200, .body = "{}"};
    struct rig rig;
    open_rig(&rig, &reply, 1, NULL);
    struct http_request request = {.deadline_ms = PATIENT_MS, .connect_ms = 20000};
    request.url = stub_url(rig.stub);
    struct end outcome = {.done = 0};
    outcome.loop = &rig.loop;
    (void)http_start(rig.http, &request, on_done, &outcome);
    while (outcome.done == 0) {
        (void)uv_run(&rig.loop, UV_RUN_ONCE);
    }
    expect(&outcome, ERR_NONE, "");
    assert_false(outcome.reply.sent);
    assert_non_null(strstr(rig.script.head[0], "GET /v1 HTTP/1.1\r\n"));
    close_rig(&rig);
}

// gzip of len times `c`, with the head of an answer in front. Free *ret_data.
static struct stub_reply zipped(char c, size_t len, char **ret_data)
{
    size_t size = len / 500 + 1024, head;
    char *plain = xmalloc(len), *data = xmalloc(size);
    z_stream z = {.next_in = (unsigned char *)plain, .avail_in = (unsigned)len};

    memset(plain, c, len);
    head = (size_t)snprintf(data, size,
                            "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
                            "Connection: close\r\n\r\n");
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = (unsigned char *)data + head;
    z.avail_out = (unsigned)(size - head);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *ret_data = data;
    head += z.total_out;
    (void)deflateEnd(&z);
    free(plain);
    return (struct stub_reply){.raw = data, .raw_len = head, .cut = true};
}

static void what_is_compressed_is_bounded_as_it_unfolds(void **state)
{
    char *data;
    struct end outcome = post(zipped('a', 100, &data), PATIENT_MS);

    (void)state;
    free(data);
    expect(&outcome, ERR_NONE, "");
    assert_int_equal(strspn(outcome.body, "a"), 100);
    outcome = post(zipped('a', BODY_MAX, &data), PATIENT_MS);
    free(data);
    expect(&outcome, ERR_NONE, "");
    outcome = post(zipped('a', BODY_MAX + 1, &data), PATIENT_MS);
    free(data);
    expect(&outcome, ERR_LIMIT, "more than 65536 bytes");
    outcome = post(zipped('\0', (size_t)256 << 20, &data), PATIENT_MS); // a bomb
    free(data);
    expect(&outcome, ERR_LIMIT, "more than 65536 bytes");
}

// ---- what does not ----

static void broken_answers_have_a_class_each(void **state)
{
    static const struct {
        struct stub_reply reply;
        enum err_code code;
        const char *why;
    } row[] = {
        {{.reset = true}, ERR_UNREACHABLE, "broke the connection off"},
        {{.status = 200, .body = "half", .cut = true}, ERR_INVALID, "less than it announced"},
        {RAW_CUT(""), ERR_UNREACHABLE, "without an answer"},
        {RAW_CUT("HTTP/1.1 200 OK\r\nContent-Le"), ERR_NONE, ""}, // no length: to the end
        {RAW_CUT("I am no HTTP server\r\n\r\n"), ERR_INVALID, "does not speak HTTP"},
        {RAW_CUT("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nxx"), ERR_INVALID, ""},
        // A length past all bounds says nothing: what came is the answer.
        {RAW_CUT("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nxx"), ERR_NONE,
         ""},
        {RAW_CUT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), ERR_UNREACHABLE,
         ""}, // curl takes it for noise
        {RAW_CUT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), ERR_INVALID,
         "less than it announced"},
        {RAW_CUT("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"),
         ERR_INVALID, "encoding"},
        {RAW_CUT("HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 4\r\n\r\nnope"),
         ERR_INVALID, "encoding"},
        {{.status = 200, .endless = true}, ERR_LIMIT, "more than 65536 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct end outcome = post(row[i].reply, PATIENT_MS);

        if (outcome.reply.err.code != row[i].code || !strstr(outcome.reply.err.text, row[i].why)) {
            print_error("case %zu\n", i);
        }
        expect(&outcome, row[i].code, row[i].why);
    }
}

static void more_than_was_announced_is_left_out(void **state)
{
    struct stub_reply reply =
        RAW_CUT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\nno");
    struct end outcome = post(reply, PATIENT_MS);

    (void)state;
    expect(&outcome, ERR_NONE, "");
    assert_string_equal(outcome.body, "{}");
}

static void headers_have_a_bound(void **state)
{
    static const char line[] = "Retry-After: 1\r\n";

    (void)state;
    struct strbuf text = STRBUF_INIT;
    strbuf_adds(&text, "HTTP/1.1 200 OK\r\n");
    for (size_t i = 0; i < 1000; i++) { // more than are kept: the rest is left out
        strbuf_adds(&text, line);
    }
    strbuf_adds(&text, "Content-Length: 2\r\n\r\n{}");
    struct stub_reply reply = {.cut = true};
    reply.raw = text.data;
    reply.raw_len = text.len;
    struct end outcome = post(reply, PATIENT_MS);
    expect(&outcome, ERR_NONE, "");
    assert_true(strlen(outcome.reply.headers) > 1000);
    strbuf_reset(&text);
    strbuf_adds(&text, "HTTP/1.1 200 OK\r\n");
    for (size_t i = 0; i < 100000; i++) {
        strbuf_adds(&text, line);
    }
    reply.raw = text.data;
    reply.raw_len = text.len;
    outcome = post(reply, PATIENT_MS);
    expect(&outcome, ERR_LIMIT, "more than 65536 bytes");
    strbuf_release(&text);
}

static void who_is_too_slow_is_given_up(void **state)
{
    static const struct stub_reply slow[] = {
        {.silent = true},
        {.status = 200, .body = "a long tale, told slowly", .drip_ms = 40},
        {.status = 200, .body = "{}", .delay_ms = PATIENT_MS},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(slow); i++) {
        struct end outcome = post(slow[i], SHORT_MS);

        expect(&outcome, ERR_TIMED_OUT, "did not answer in time");
        assert_true(outcome.reply.sent); // it may have been served
    }
}

static void nobody_there_is_unreachable(void **state)
{
    struct rig rig, gone;

    (void)state;
    struct stub_reply reply = {.status = 200};
    open_rig(&gone, &reply, 1, NULL);
    char *url = xstrdup(stub_url(gone.stub));
    close_rig(&gone);
    open_rig(&rig, &reply, 1, NULL);
    struct end outcome = post_to(&rig, url, PATIENT_MS);
    expect(&outcome, ERR_UNREACHABLE, "cannot be reached");
    assert_false(outcome.reply.sent);
    outcome = post_to(&rig, "ftp://127.0.0.1/", PATIENT_MS);
    expect(&outcome, ERR_INVALID, "");
    outcome = post_to(&rig, "http://", PATIENT_MS);
    expect(&outcome, ERR_INVALID, "");
    close_rig(&rig);
    free(url);
}

// ---- ends ----

static void what_is_cancelled_says_nothing_more(void **state)
{
    struct end at_once = {.done = 0}, later = {.done = 0};

    (void)state;
    struct stub_reply reply = {.silent = true};
    struct rig rig;
    open_rig(&rig, &reply, 1, NULL);
    http_cancel(begin(&rig, stub_url(rig.stub), PATIENT_MS, &at_once));
    struct http_call *call = begin(&rig, stub_url(rig.stub), PATIENT_MS, &later);
    while (stub_requests(rig.stub) == 0) {
        (void)uv_run(&rig.loop, UV_RUN_ONCE);
    }
    http_cancel(call);
    assert_int_equal(http_count(rig.http), 0);
    close_rig(&rig);
    assert_int_equal(at_once.done + later.done, 0);
}

static void closing_ends_all_of_it(void **state)
{
    (void)state;
    struct stub_reply reply = {.silent = true};
    struct rig rig;
    open_rig(&rig, &reply, 1, NULL);
    struct end outcome[8] = {{.done = 0}};
    for (size_t i = 0; i < ARRAY_LEN(outcome); i++) {
        (void)begin(&rig, stub_url(rig.stub), PATIENT_MS, &outcome[i]);
    }
    while (stub_requests(rig.stub) < ARRAY_LEN(outcome) / 2) {
        (void)uv_run(&rig.loop, UV_RUN_ONCE);
    }
    assert_int_equal(http_count(rig.http), ARRAY_LEN(outcome));
    close_rig(&rig);
    for (size_t i = 0; i < ARRAY_LEN(outcome); i++) {
        assert_int_equal(outcome[i].done, 0);
    }
}

int main(void)
{
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_comes_with_what_matters),
        cmocka_unit_test(a_connection_is_used_again),
        cmocka_unit_test(without_a_body_it_is_a_get),
        cmocka_unit_test(what_is_compressed_is_bounded_as_it_unfolds),
        cmocka_unit_test(broken_answers_have_a_class_each),
        cmocka_unit_test(more_than_was_announced_is_left_out),
        cmocka_unit_test(headers_have_a_bound),
        cmocka_unit_test(who_is_too_slow_is_given_up),
        cmocka_unit_test(nobody_there_is_unreachable),
        cmocka_unit_test(what_is_cancelled_says_nothing_more),
        cmocka_unit_test(closing_ends_all_of_it),
    };

    for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
        (void)unsetenv(proxies[i]); // the machine's own
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
