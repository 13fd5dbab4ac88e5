// One request to a server that answers well, badly or not at all (tests/support/endpoint_stub and
// tls_stub): each case has a stated outcome, and the key is in none of them.
#include "common/mem.h"
#include "tests/support/endpoint_stub.h"
#include "tests/support/tls_stub.h"
#include "worker/llm/http.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define KEY "secret-4711"
#define BODY "{\"ask\":1}"
#define BODY_MAX ((size_t)64 << 10)
#define PATIENT_MS 60000 // a deadline that no test reaches
#define SHORT_MS 300     // one that is to be reached

// What the stub does, request by request; the last one is repeated.
struct script {
    struct stub_reply reply[4];
    size_t count;
    char head[4][1024]; // of the requests that came
};

struct rig {
    uv_loop_t loop;
    struct http *http;
    struct stub *stub;
    struct script script;
};

struct end {
    uv_loop_t *loop;
    unsigned done; // times
    struct http_reply reply;
    char body[256];
};

static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    struct script *script = owner;

    if (request->number < ARRAY_LEN(script->head)) {
        (void)snprintf(script->head[request->number], sizeof(script->head[0]), "%s\n%s",
                       request->head, request->body);
    }
    *reply = script->reply[request->number < script->count ? request->number : script->count - 1];
}

static void open_rig(struct rig *rig, const struct stub_reply *reply, size_t count,
                     const char *ca_file)
{
    struct http_config config = {.user_agent = "test/1", .body_max = BODY_MAX, .ca_file = ca_file};

    *rig = (struct rig){.script.count = count};
    memcpy(rig->script.reply, reply, count * sizeof(*reply));
    assert_int_equal(uv_loop_init(&rig->loop), 0);
    rig->stub = stub_start(&rig->loop, answer, &rig->script);
    struct err err = ERR_INIT;
    assert_int_equal(http_create(&rig->http, &rig->loop, &config, &err), 0);
}

// Nothing may be left of anything.
static void close_rig(struct rig *rig)
{
    http_close(rig->http);
    stub_stop(rig->stub);
    while (uv_run(&rig->loop, UV_RUN_DEFAULT) != 0) {
    }
    assert_int_equal(uv_loop_close(&rig->loop), 0);
}

static void on_done(void *owner, const struct http_reply *reply)
{
    struct end *outcome = owner;
    size_t len = reply->body.len < 255 ? reply->body.len : 255;

    outcome->done++;
    outcome->reply = *reply;
    uv_stop(outcome->loop); // a turn that ran a timer would go on to wait for a socket
    if (len > 0) {
        memcpy(outcome->body, reply->body.data, len);
    }
    outcome->body[len] = '\0';
    assert_null(strstr(reply->err.text, KEY));
    assert_null(strstr(reply->headers, KEY));
}

static struct http_call *begin(struct rig *rig, const char *url, uint64_t deadline_ms,
                               struct end *outcome)
{
    const char *headers[] = {"Content-Type: application/json", "Authorization: Bearer " KEY, NULL};
    struct http_request request = {.url = url,
                                   .headers = headers,
                                   .body = BODY,
                                   .len = strlen(BODY),
                                   .deadline_ms = deadline_ms,
                                   .connect_ms = 20000};

    outcome->loop = &rig->loop;
    struct http_call *call = http_start(rig->http, &request, on_done, outcome);
    assert_int_equal(outcome->done, 0); // never inside the call
    return call;
}

static struct end post_to(struct rig *rig, const char *url, uint64_t deadline_ms)
{
    struct end outcome = {.done = 0};

    (void)begin(rig, url, deadline_ms, &outcome);
    while (outcome.done == 0) {
        (void)uv_run(&rig->loop, UV_RUN_ONCE);
    }
    assert_int_equal(http_count(rig->http), 0);
    return outcome;
}

static struct end post(struct stub_reply reply, uint64_t deadline_ms)
{
    struct rig rig;

    open_rig(&rig, &reply, 1, NULL);
    struct end outcome = post_to(&rig, stub_url(rig.stub), deadline_ms);
    close_rig(&rig);
    return outcome;
}

static void expect(const struct end *outcome, enum err_code code, const char *why)
{
    if (outcome->reply.err.code != code || !strstr(outcome->reply.err.text, why)) {
        fail_msg("%s instead of %s: %s", err_name(outcome->reply.err.code), err_name(code),
                 outcome->reply.err.text);
    }
}

#define RAW(text)                                                                                  \
    {                                                                                              \
        .raw = text, .raw_len = sizeof(text) - 1                                                   \
    }
#define RAW_CUT(text)                                                                              \
    {                                                                                              \
        .raw = text, .raw_len = sizeof(text) - 1, .cut = true                                      \
    }

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

// ---- redirects ----

static void a_key_does_not_travel(void **state)
{
    static const int status[] = {301, 302, 303, 307, 308};
    struct rig other, rig;

    (void)state;
    struct stub_reply good = {.status = 200, .body = "{}"};
    for (size_t i = 0; i < ARRAY_LEN(status); i++) {
        struct stub_reply away = {.status = status[i]};

        open_rig(&other, &good, 1, NULL);
        char *header = xasprintf("Location: %s\r\n", stub_url(other.stub)); // another port
        away.headers = header;
        open_rig(&rig, &away, 1, NULL);
        struct end outcome = post_to(&rig, stub_url(rig.stub), PATIENT_MS);
        expect(&outcome, ERR_DENIED, "where the key must not go");
        close_rig(&rig);
        (void)uv_run(&other.loop, UV_RUN_NOWAIT);
        assert_int_equal(stub_connections(other.stub), 0);
        close_rig(&other);
        free(header);
    }
}

static void other_hosts_and_schemes_are_elsewhere(void **state)
{
    static const char *const location[] = {
        "http://127.0.0.2/v1", "http://localhost/v1", "https://127.0.0.1/v1", "//127.0.0.2/v1",
        "file:///etc/passwd",  "gopher://127.0.0.1/", "http://[::1]/v1",      "",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(location); i++) {
        char *header = xasprintf("Location: %s\r\n", location[i]);
        struct end outcome =
            post((struct stub_reply){.status = 307, .headers = header}, PATIENT_MS);

        expect(&outcome, ERR_DENIED, "redirects elsewhere");
        free(header);
    }
}

static void the_same_server_may_point_elsewhere_on_it(void **state)
{
    (void)state;
    struct stub_reply reply[] = {{.status = 308, .headers = "Location: /v2/chat\r\n"},
                                 {.status = 200, .body = "{\"v\":2}"}};
    struct rig rig;
    open_rig(&rig, reply, 2, NULL);
    struct end outcome = post_to(&rig, stub_url(rig.stub), PATIENT_MS);
    expect(&outcome, ERR_NONE, "");
    assert_string_equal(outcome.body, "{\"v\":2}");
    assert_non_null(strstr(rig.script.head[1], "POST /v2/chat HTTP/1.1\r\n"));
    assert_non_null(strstr(rig.script.head[1], "Authorization: Bearer " KEY "\r\n"));
    assert_non_null(strstr(rig.script.head[1], "\n" BODY));
    close_rig(&rig);
    open_rig(&rig, reply, 1, NULL); // for ever
    outcome = post_to(&rig, stub_url(rig.stub), PATIENT_MS);
    expect(&outcome, ERR_DENIED, "redirects");
    assert_int_equal(stub_requests(rig.stub), 4);
    close_rig(&rig);
}

// ---- proxies, certificates ----

static void a_proxy_comes_from_the_environment(void **state)
{
    (void)state;
    struct stub_reply reply = {.status = 200, .body = "{}"};
    struct rig rig;
    open_rig(&rig, &reply, 1, NULL);
    (void)setenv("http_proxy", stub_url(rig.stub), 1);
    struct end outcome = post_to(&rig, "http://endpoint.invalid/v1", PATIENT_MS);
    (void)unsetenv("http_proxy");
    expect(&outcome, ERR_NONE, "");
    assert_non_null(strstr(rig.script.head[0], "POST http://endpoint.invalid/v1 HTTP/1.1\r\n"));
    close_rig(&rig);
}

// A proxy sees to whom a TLS connection is to go, and no key.
static void a_proxy_gets_no_key(void **state)
{
    (void)state;
    struct stub_reply reply = {.status = 403, .headers = "Retry-After: 9\r\n", .body = "no"};
    struct rig rig;
    open_rig(&rig, &reply, 1, NULL);
    (void)setenv("https_proxy", stub_url(rig.stub), 1);
    struct end outcome = post_to(&rig, "https://endpoint.invalid/v1", PATIENT_MS);
    (void)unsetenv("https_proxy");
    expect(&outcome, ERR_UNREACHABLE, "");
    assert_false(outcome.reply.sent);
    assert_string_equal(outcome.reply.headers, "");
    assert_non_null(strstr(rig.script.head[0], "CONNECT endpoint.invalid:443"));
    assert_null(strstr(rig.script.head[0], KEY));
    close_rig(&rig);
}

// With its certificate in a file of trusted ones, or without.
static struct end post_tls(enum tls_stub_kind kind, bool trusted, size_t *ret_requests)
{
    struct tls_stub *tls = tls_stub_start(kind);
    char path[] = "/tmp/kcast-ca.XXXXXX";
    int fd = mkstemp(path);
    const char *pem = tls_stub_certificate(tls);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, pem, strlen(pem)), strlen(pem));
    assert_int_equal(close(fd), 0);
    struct stub_reply unused = {.status = 200};
    struct rig rig;
    open_rig(&rig, &unused, 1, trusted ? path : NULL);
    struct end outcome = post_to(&rig, tls_stub_url(tls), PATIENT_MS);
    close_rig(&rig);
    assert_int_equal(unlink(path), 0);
    *ret_requests = tls_stub_stop(tls);
    return outcome;
}

static void certificates_are_checked(void **state)
{
    static const struct {
        enum tls_stub_kind kind;
        bool trusted;
        enum err_code code;
    } row[] = {
        {TLS_STUB_GOOD, true, ERR_NONE},         {TLS_STUB_GOOD, false, ERR_DENIED},
        {TLS_STUB_EXPIRED, true, ERR_DENIED},    {TLS_STUB_EXPIRED, false, ERR_DENIED},
        {TLS_STUB_OTHER_HOST, true, ERR_DENIED}, {TLS_STUB_OTHER_HOST, false, ERR_DENIED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        size_t requests;
        struct end outcome = post_tls(row[i].kind, row[i].trusted, &requests);

        expect(&outcome, row[i].code, row[i].code ? "a certificate that cannot be trusted" : "");
        assert_int_equal(requests, row[i].code ? 0 : 1); // the key has not been sent
        assert_int_equal(outcome.reply.sent, row[i].code == ERR_NONE);
        assert_string_equal(outcome.body, row[i].code ? "" : "{\"tls\":1}");
    }
}

static void who_speaks_no_tls_is_not_spoken_to(void **state)
{
    struct stub_reply reply = RAW_CUT("HTTP/1.1 400 Bad Request\r\n\r\n");

    (void)state;
    reply.status = 0;
    struct rig rig;
    open_rig(&rig, &reply, 1, NULL);
    char *url = xasprintf("https%s", stub_url(rig.stub) + strlen("http"));
    struct end outcome = post_to(&rig, url, SHORT_MS); // the stub waits for a head that never ends
    assert_true(outcome.reply.err.code == ERR_TIMED_OUT ||
                outcome.reply.err.code == ERR_UNREACHABLE);
    assert_false(outcome.reply.sent);
    assert_int_equal(stub_requests(rig.stub), 0);
    close_rig(&rig);
    free(url);
}

static void a_missing_file_of_certificates_is_said_at_once(void **state)
{
    (void)state;
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct http_config config = {
        .user_agent = "test/1", .body_max = BODY_MAX, .ca_file = "/nonexistent/ca.pem"};
    struct err err = ERR_INIT;
    struct http *http;
    assert_int_equal(http_create(&http, &loop, &config, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "/nonexistent/ca.pem"));
    assert_int_equal(uv_loop_close(&loop), 0);
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
        cmocka_unit_test(a_key_does_not_travel),
        cmocka_unit_test(other_hosts_and_schemes_are_elsewhere),
        cmocka_unit_test(the_same_server_may_point_elsewhere_on_it),
        cmocka_unit_test(a_proxy_comes_from_the_environment),
        cmocka_unit_test(a_proxy_gets_no_key),
        cmocka_unit_test(certificates_are_checked),
        cmocka_unit_test(who_speaks_no_tls_is_not_spoken_to),
        cmocka_unit_test(a_missing_file_of_certificates_is_said_at_once),
        cmocka_unit_test(what_is_cancelled_says_nothing_more),
        cmocka_unit_test(closing_ends_all_of_it),
    };

    for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
        (void)unsetenv(proxies[i]); // the machine's own
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
