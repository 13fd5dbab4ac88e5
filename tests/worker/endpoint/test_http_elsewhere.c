// A server that is not, or may not be, the one that was meant: redirects, proxies, certificates.
// The key goes to no other.
#include "tests/worker/endpoint/http_rig.h"

#include "tests/support/tls_stub.h"

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

int main(void)
{
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
                                          "ALL_PROXY",  "no_proxy",    "NO_PROXY"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_does_not_travel),
        cmocka_unit_test(other_hosts_and_schemes_are_elsewhere),
        cmocka_unit_test(the_same_server_may_point_elsewhere_on_it),
        cmocka_unit_test(a_proxy_comes_from_the_environment),
        cmocka_unit_test(a_proxy_gets_no_key),
        cmocka_unit_test(certificates_are_checked),
        cmocka_unit_test(who_speaks_no_tls_is_not_spoken_to),
        cmocka_unit_test(a_missing_file_of_certificates_is_said_at_once),
    };

    for (size_t i = 0; i < ARRAY_LEN(proxies); i++) {
        (void)unsetenv(proxies[i]); // the machine's own
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
