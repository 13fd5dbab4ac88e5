// Every kind of unwanted caller, one after the other. Each is refused, counted and told to
// on_refusal. A good caller from before is served on over the same connection, and a later one is
// served too.
#include "tests/net/bare_caller.h"

// Opens a new service, which tells its first refusal at once, and lets a good caller be served.
static void open_small_service(struct tls_fixture *s)
{
    remote_close(s->f.remote);
    s->f.remote = NULL;
    service_close(s->f.service);
    s->f.refusals = 0;
    s->f.refusal[0] = '\0';
    open_tls_service(s);
    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    s->other = s->f.remote;
    s->f.remote = NULL;
}

// Expects one refusal whose reason contains `reason`, and that good callers are served.
static void expect_refused(struct tls_fixture *s, const char *reason)
{
    while (service_refusal_count(s->f.service) == 0) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    assert_int_equal(service_refusal_count(s->f.service), 1);
    assert_int_equal(s->f.refusals, 1);
    if (!strstr(s->f.refusal, reason)) {
        fail_msg("\"%s\" instead of \"%s\"", s->f.refusal, reason);
    }
    remote_close(s->f.remote);
    s->f.remote = s->other; // its call would end with ERR_UNREACHABLE if its connection were lost
    s->other = NULL;
    expect_success(&s->f);
    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    assert_int_equal(service_refusal_count(s->f.service), 1);
}

static void bad_certificates_are_refused(void **state)
{
    struct tls_fixture *s = *state;
    struct authority *ours = open_authority(s, "ours");

    issue(s, ours, "late", NULL, 0, -2 * DAY, -DAY);
    issue(s, ours, "early", NULL, 0, DAY, 2 * DAY); // as with a wrong clock
    authority_free(ours);
    open_small_service(s);
    expect_no_handshake(s, NULL, 0, NULL);
    expect_refused(s, "it shows no certificate");
    open_small_service(s);
    expect_no_handshake(s, "mallory", 0, NULL);
    expect_refused(s, "its certificate is not signed by our authority");
    open_small_service(s);
    expect_no_handshake(s, "late", 0, NULL);
    expect_refused(s, "its certificate has expired");
    open_small_service(s);
    expect_no_handshake(s, "early", 0, NULL);
    expect_refused(s, "its certificate is not valid yet (is the clock right?)");
    open_small_service(s);
    expect_no_handshake(s, "server", 0, NULL);
    expect_refused(s, "its certificate is not for this side of a connection");
    struct err err = ERR_INIT;
    // Our own programs refuse such a certificate before they call.
    assert_null(try_tls(s, "ours", "early", &err));
    assert_non_null(strstr(err.text, "is not valid yet (is the clock right?)"));
}

static void bad_tokens_and_small_roles_are_refused(void **state)
{
    struct tls_fixture *s = *state;
    char *wrong = xstrdup(s->submit_token);
    uint64_t job = 1;
    struct job_ids ids = {.jobs = &job, .jobs_count = 1};

    wrong[strlen(wrong) - 1] = wrong[strlen(wrong) - 1] == '0' ? '1' : '0';
    open_small_service(s);
    connect_as(s, "ours", "alice", NULL);
    expect_denied(s, "no token was shown");
    expect_refused(s, "no token was shown");
    open_small_service(s);
    connect_as(s, "ours", "alice", wrong);
    int answers = s->f.answers;
    call_status(&s->f);
    run_until(&s->f, answers + 1);
    assert_int_equal(s->f.last_error, ERR_DENIED);
    assert_true(service_refusal_count(s->f.service) >=
                1); // the HELLO with the token, and perhaps the call
    assert_non_null(strstr(s->f.refusal, "its token is not known here"));
    assert_null(strstr(s->f.refusal, strrchr(wrong, '.') + 1));
    remote_close(s->other);
    s->other = NULL;
    open_small_service(s);
    connect_as(s, "ours", "alice", s->observe_token);
    answers = s->f.answers;
    call(&s->f, OP_CANCEL, &job_ids_message, &ids, &job_infos_message, CALL_MS);
    run_until(&s->f, answers + 1);
    assert_int_equal(s->f.last_error, ERR_DENIED);
    expect_refused(s, "olga has the role observe, and CANCEL takes submit");
    free(wrong);
}

static void bytes_of_other_protocols_are_refused(void **state)
{
    struct tls_fixture *s = *state;
    struct blob_put put = {.digest = digest_of("x", 1), .data = {s->f.blob_data, 200000}};

    open_small_service(s);
    int fd = raw_connect(&s->f);
    raw_send(&s->f, fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    expect_refused(s, "what came is no TLS");
    close(fd);
    open_small_service(s);
    connect_as(s, "ours", "alice", NULL);
    int answers = s->f.answers;
    call(&s->f, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, CALL_MS);
    run_until(&s->f, answers + 1);
    expect_refused(s, "65536 are allowed");
    s->f.config.greeting_ms = 3000; // enough for a handshake on a busy machine
    open_small_service(s);
    fd = raw_connect(&s->f);
    raw_send(&s->f, fd, "\x16\x03\x01\x02\x00\x01", 6);
    expect_refused(s, "no greeting and no valid token within 3000 ms");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(bad_certificates_are_refused),
        TLS_TEST(bad_tokens_and_small_roles_are_refused),
        TLS_TEST(bytes_of_other_protocols_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
