// What is refused over TLS, and that other callers are served meanwhile.
#include "net/rpc/service_state.h"
#include "tests/net/bare_caller.h"
#include "tests/support/until.h"
#include <utlist.h>

// --- callers and servers that are refused

static void strangers_are_refused_and_told_why(void **state)
{
    struct tls_fixture *s = *state;
    char *wrong = xstrdup(s->submit_token);

    wrong[strlen(wrong) - 1] = wrong[strlen(wrong) - 1] == '0' ? '1' : '0';
    connect_as(s, "ours", "alice", wrong);
    expect_denied(s, "its token is not known here");
    connect_as(s, "ours", "alice", NULL);
    expect_denied(s, "no token was shown");
    assert_true(service_refusal_count(s->f.service) >= 2);
    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    assert_null(strstr(s->f.refusal, strrchr(wrong, '.') + 1));
    free(wrong);
}

static void a_small_role_may_not_do_more(void **state)
{
    struct tls_fixture *s = *state;
    uint64_t job = 1;
    struct job_ids ids = {.jobs = &job, .jobs_count = 1};

    connect_as(s, "ours", "alice", s->observe_token);
    expect_success(&s->f);
    call(&s->f, OP_CANCEL, &job_ids_message, &ids, &job_infos_message, CALL_MS);
    run_until(&s->f, 2);
    assert_int_equal(s->f.last_error, ERR_DENIED);
    assert_non_null(strstr(s->f.last_text, "olga has the role observe, and CANCEL takes submit"));
    assert_true(service_refusal_count(s->f.service) >= 1);
    expect_success(&s->f);
}

static void certificates_of_others_are_refused(void **state)
{
    struct tls_fixture *s = *state;

    // The caller does not accept the server: another authority's certificate.
    connect_as(s, "theirs", "mallory", s->submit_token);
    expect_denied(s, "its certificate is not signed by our authority");
    UNTIL(((void)uv_run(&s->f.loop, UV_RUN_NOWAIT), s->f.refusals > 0));
    assert_non_null(strstr(s->f.refusal, "it says that our certificate is of another authority"));
    // The server does not accept the caller: mallory trusts our authority but has no certificate of
    // it.
    char *ca = xasprintf("%s/mallory/ca.pem", s->dir);
    struct bytes add = {0};
    char *ours = xasprintf("%s/ours/ca.pem", s->dir);
    int fd = open(ca, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(file_read(&add, ours, 8192, NULL), 0);
    assert_int_equal(file_write_fd(fd, add.data, add.len, ca, NULL), 0);
    close(fd);
    s->f.refusals = 0;
    connect_as(s, "mallory", "mallory", s->submit_token);
    expect_denied(s, "our certificate is of another authority");
    assert_int_equal(s->f.successes, 0);
    assert_true(service_refusal_count(s->f.service) >= 2);
    bytes_clear(&add);
    free(ours);
    free(ca);
}

static void a_callers_certificate_is_no_servers(void **state)
{
    struct tls_fixture *s = *state;
    char *cert = xasprintf("%s/alice/cert.pem", s->dir);
    char *key = xasprintf("%s/alice/key.pem", s->dir);
    struct tls_files files = {.ca = s->path[0], .cert = cert, .key = key};
    struct tls *tls = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(tls_create(&tls, TLS_SERVER, &files, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "is not a certificate for a server"));
    err_clear(&err);
    assert_null(try_tls(s, "ours", "server", &err));
    assert_non_null(strstr(err.text, "is not a certificate for a caller"));
    free(cert);
    free(key);
}

static void another_hosts_certificate_is_refused(void **state)
{
    struct tls_fixture *s = *state;
    char *path[2] = {s->path[1], s->path[2]};

    service_close(s->f.service);
    s->path[1] = xasprintf("%s/elsewhere/cert.pem", s->dir);
    s->path[2] = xasprintf("%s/elsewhere/key.pem", s->dir);
    open_tls_service(s);
    connect_as(s, "ours", "alice", s->submit_token);
    expect_denied(s, "its certificate is for another host");
    struct err err = ERR_INIT;
    struct tls *tls = try_tls(s, "ours", "alice", &err);
    char *url = xasprintf("tls://localhost%s", strrchr(service_url(s->f.service), ':'));
    remote_close(s->f.remote);
    assert_int_equal(remote_create_tls(&s->f.remote, &s->f.loop, url, tls, s->submit_token, &err),
                     0);
    expect_denied(s, "its certificate is for another host");
    tls_release(tls);
    free(url);
    free(path[0]);
    free(path[1]);
}

// A certificate may expire while a program runs. So one is loaded shortly before its end and used
// after it.
static void an_expired_certificate_is_refused(void **state)
{
    struct tls_fixture *s = *state;
    struct authority *ours = open_authority(s, "ours");

    issue(s, ours, "late", NULL, 0, -DAY, -1);
    struct err err = ERR_INIT;
    assert_null(try_tls(s, "ours", "late", &err));
    assert_non_null(strstr(err.text, "has expired"));
    issue(s, ours, "soon", NULL, 0, -DAY, 3);
    struct tls *tls = NULL;
    tls = try_tls(s, "ours", "soon", &err);
    authority_free(ours);
    if (!tls) {
        return; // the machine is too slow for this part of the test
    }
    UNTIL((int64_t)time(NULL) > s->now_s + 3);
    assert_int_equal(remote_create_tls(&s->f.remote, &s->f.loop, service_url(s->f.service), tls,
                                       s->submit_token, &err),
                     0);
    tls_release(tls);
    expect_denied(s, "our certificate has expired");
    assert_non_null(strstr(s->f.refusal, "its certificate has expired"));
}

static void files_that_do_not_fit_are_named(void **state)
{
    struct tls_fixture *s = *state;
    char *key = xasprintf("%s/alice/key.pem", s->dir);
    char *cert = xasprintf("%s/alice/cert.pem", s->dir);
    char *ca = xasprintf("%s/alice/ca.pem", s->dir);
    struct tls_files files = {.ca = ca, .cert = cert, .key = s->path[2]};
    struct tls *tls = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(tls_create(&tls, TLS_CALLER, &files, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "is not the key of"));
    files = (struct tls_files){.ca = ca, .cert = key, .key = key};
    err_clear(&err);
    assert_int_equal(tls_create(&tls, TLS_CALLER, &files, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "no certificate in PEM"));
    files = (struct tls_files){.ca = ca, .cert = cert, .key = key};
    assert_int_equal(chmod(key, 0644), 0);
    err_clear(&err);
    assert_int_equal(tls_create(&tls, TLS_CALLER, &files, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "chmod 600"));
    free(key);
    free(cert);
    free(ca);
}

static void in_the_clear_and_encrypted_do_not_mix(void **state)
{
    struct tls_fixture *s = *state;
    struct err err = ERR_INIT;
    char *url = xasprintf("tcp%s", service_url(s->f.service) + 3);

    // tcp:// to a tls:// port: the greeting is not TLS.
    assert_int_equal(remote_create(&s->f.remote, &s->f.loop, url, &err), 0);
    call_status(&s->f);
    while (service_refusal_count(s->f.service) == 0) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    assert_string_equal(s->f.refusal, "what came is no TLS");
    remote_close(s->f.remote);
    s->f.remote = NULL;
    free(url);
    // tls:// to a tcp:// port.
    service_close(s->f.service);
    s->f.config.files = (struct identity_files){0};
    open_service(&s->f, "tcp://127.0.0.1:0");
    url = xasprintf("tls%s", service_url(s->f.service) + 3);
    struct tls *tls = try_tls(s, "ours", "alice", &err);
    assert_int_equal(remote_create_tls(&s->f.remote, &s->f.loop, url, tls, s->submit_token, &err),
                     0);
    call_status(&s->f);
    run_until(&s->f, 2);
    assert_int_equal(s->f.last_error, ERR_PROTOCOL);
    assert_int_equal(s->f.successes, 0);
    tls_release(tls);
    free(url);
}

// Before a token was shown, a frame may not be large.
static void a_stranger_cannot_send_much(void **state)
{
    struct tls_fixture *s = *state;
    struct blob_put put = {.digest = digest_of("x", 1), .data = {s->f.blob_data, 200000}};

    connect_as(s, "ours", "alice", NULL);
    call(&s->f, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, CALL_MS);
    run_until(&s->f, 1);
    assert_int_equal(s->f.successes, 0);
    assert_non_null(strstr(s->f.refusal, "65536 are allowed"));
    connect_as(s, "ours", "alice", s->submit_token); // after a token it may
    call(&s->f, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, CALL_MS);
    run_until(&s->f, 2);
    assert_int_equal(s->f.last_error, ERR_UNSUPPORTED); // the handler got it
}

// --- bare sockets

// Copies bytes between a remote and the service, records what the remote sends, and sends it again.
static void what_was_recorded_cannot_be_replayed(void **state)
{
    struct tls_fixture *s = *state;
    struct err err = ERR_INIT;
    int listener = raw_listen(&s->f);
    char *middle = xstrdup(remote_url(s->f.remote));
    char *tls_url = xasprintf("tls%s", middle + 3);
    struct tls *tls = try_tls(s, "ours", "alice", &err);

    remote_close(s->f.remote);
    assert_int_equal(
        remote_create_tls(&s->f.remote, &s->f.loop, tls_url, tls, s->submit_token, &err), 0);
    call_status(&s->f);
    int caller = raw_accept(&s->f, listener);
    int server = raw_connect(&s->f);
    struct strbuf record = STRBUF_INIT;
    char data[16384];
    while (s->f.answers == 0) {
        ssize_t len = recv(caller, data, sizeof(data), MSG_DONTWAIT);

        if (len > 0) {
            strbuf_add(&record, data, (size_t)len);
            raw_send(&s->f, server, data, (size_t)len);
        }
        len = recv(server, data, sizeof(data), MSG_DONTWAIT);
        if (len > 0) {
            raw_send(&s->f, caller, data, (size_t)len);
        }
        (void)uv_run(&s->f.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(s->f.successes, 1);
    close(server);
    close(caller);
    close(listener);
    s->f.refusals = 0;
    uint64_t requests = service_request_count(s->f.service);
    uint64_t refusals = service_refusal_count(s->f.service);
    server = raw_connect(&s->f);
    raw_send(&s->f, server, record.data, record.len);
    while (service_refusal_count(s->f.service) == refusals) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    close(server);
    assert_int_equal(service_request_count(s->f.service), requests);
    assert_int_equal(s->f.refusals, 1);
    assert_non_null(strstr(s->f.refusal, "TLS failed: "));
    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    tls_release(tls);
    free(tls_url);
    free(middle);
    strbuf_release(&record);
}

static void nonsense_on_the_wire_is_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27},
        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x01", 11}, // a ClientHello that stops
        {"\x16\x03\x03\x00\x04\x01\xff\xff\xff", 9},          // longer than its record
        {"\x16\x03\x03\xff\xff\x01", 6},                      // a record above the limit
        {"\x15\x03\x03\x00\x02\x02\x28", 7},                  // an alert
        {"\x17\x03\x03\x00\x05hello", 10},                    // data before the handshake
        {"\x80\x2e\x01\x00\x02", 5},                          // SSL 2
        {"\0\0\0\0\0\0\0\0", 8},
    };
    struct tls_fixture *s = *state;

    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    int fd[ARRAY_LEN(bad)];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        fd[i] = raw_connect(&s->f);
        raw_send(&s->f, fd[i], bad[i].bytes, bad[i].len);
        expect_success(&s->f);
    }
    while (service_refusal_count(s->f.service) < 4) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    assert_int_equal(s->f.refusals, 1); // on_refusal was called once, the others are only counted
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        close(fd[i]);
    }
}

static bool is_working(const struct service *service)
{
    const struct connection *connection;

    DL_FOREACH (service->connections, connection) {
        if (stream_is_working(connection->stream)) {
            return true;
        }
    }
    return false;
}

// Runs the loop until all strangers have been accepted and none of them waits for the service. It
// then depends on nobody's speed who has to give way to the next one.
static void until_strangers_are_idle(struct tls_fixture *s, size_t strangers)
{
    struct service *service = s->f.service;

    while (service_refusal_count(service) + service->stranger_count < strangers ||
           is_working(service)) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
}

// Connections that send nothing, or half a handshake, fill the service. Callers with a token are
// served meanwhile, old and new ones.
static void a_thousand_half_open_connections_do_no_harm(void **state)
{
    enum { STRANGERS = 1000 };
    struct tls_fixture *s = *state;
    struct rlimit limit;
    int *fd = xcalloc(STRANGERS, sizeof(*fd));

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
    if (limit.rlim_cur < 2 * STRANGERS + 64) {
        free(fd);
        print_message("skipped because this machine allows too few open files\n");
        skip();
    }
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    service_close(s->f.service);
    s->f.config.connections_max = 200;
    s->f.config.greeting_ms = 100000;
    open_tls_service(s);
    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    for (size_t i = 0; i < STRANGERS; i++) {
        fd[i] = raw_connect(&s->f);
        if (i % 2) {
            raw_send(&s->f, fd[i], "\x16\x03\x01\x02\x00\x01", 6);
        }
        (void)uv_run(&s->f.loop, UV_RUN_NOWAIT);
    }
    expect_success(&s->f);
    until_strangers_are_idle(s, STRANGERS);
    // One refusal a second is told: this one shall be.
    s->f.service->refusal_limit.told_ns = 0;
    connect_as(s, "ours", "alice", s->observe_token); // a new one makes room for itself
    expect_success(&s->f);
    assert_true(service_refusal_count(s->f.service) >= STRANGERS - 200);
    assert_string_equal(s->f.refusal, "too many connections, and it has not greeted");
    for (size_t i = 0; i < STRANGERS; i++) {
        close(fd[i]);
    }
    free(fd);
}

// A caller that stops in the middle of the handshake is closed, and so is one without a token.
static void a_caller_that_does_not_identify_itself_is_closed(void **state)
{
    struct tls_fixture *s = *state;

    service_close(s->f.service);
    s->f.config.greeting_ms = 50;
    open_tls_service(s);
    int fd = raw_connect(&s->f);
    raw_send(&s->f, fd, "\x16\x03\x01\x02\x00\x01", 6);
    while (service_refusal_count(s->f.service) == 0) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    assert_string_equal(s->f.refusal, "no greeting and no valid token within 50 ms");
    close(fd);
    // A certificate without a token. The time is enough for a handshake on a busy machine.
    service_close(s->f.service);
    s->f.config.greeting_ms = 3000;
    open_tls_service(s);
    connect_as(s, "ours", "alice", NULL);
    expect_denied(s, "no token");
    while (service_refusal_count(s->f.service) < 2) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
}

// --- a caller of another make

static void without_a_certificate_there_is_no_handshake(void **state)
{
    struct tls_fixture *s = *state;

    expect_no_handshake(s, NULL, 0, "it shows no certificate");
    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
}

// Sends the first message of a TLS 1.x handshake, x below 3, with a cipher suite of that time, and
// expects that the service refuses it. Libraries of today do not speak these versions any more.
static void refuse_hello(struct tls_fixture *s, unsigned char minor)
{
    uint64_t refusals = service_refusal_count(s->f.service);
    unsigned char hello[] = {
        22, 3,     1,    0,  45, // a record of the handshake
        1,  0,     0,    41,     // ClientHello
        3,  minor,               // the version, then 32 random bytes
        1,  2,     3,    4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
        17, 18,    19,   20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32,
        0,                  // no session
        0,  2,     0xc0, 9, // one suite: ECDHE-ECDSA with AES-128-CBC and SHA
        1,  0,              // no compression
    };
    int fd = raw_connect(&s->f);

    raw_send(&s->f, fd, (char *)hello, sizeof(hello));
    while (service_refusal_count(s->f.service) == refusals) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    close(fd);
}

static void old_versions_and_ciphers_are_refused(void **state)
{
    struct tls_fixture *s = *state;

    refuse_hello(s, 2); // TLS 1.1
    expect_no_handshake(s, NULL, MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256, NULL);
    expect_no_handshake(s, NULL, MBEDTLS_TLS_RSA_WITH_AES_128_GCM_SHA256, NULL);
    assert_int_equal(service_refusal_count(s->f.service), 3);
}

// A caller that knows both versions speaks the newer one with us, where our library has it.
static void the_newest_version_is_spoken(void **state)
{
    static const int suites[] = {0, MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256};
    const char *const version[] = {MBEDTLS_VERSION_MAJOR > 2 ? "TLSv1.3" : "TLSv1.2", "TLSv1.2"};
    struct tls_fixture *s = *state;

    for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
        struct bare_caller caller;

        bare_open(&caller, s, "alice", suites[i]);
        assert_int_equal(bare_greet(&caller, s), 0);
        assert_string_equal(mbedtls_ssl_get_version(&caller.ssl), version[i]);
        bare_close(&caller);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(strangers_are_refused_and_told_why),
        TLS_TEST(a_small_role_may_not_do_more),
        TLS_TEST(certificates_of_others_are_refused),
        TLS_TEST(a_callers_certificate_is_no_servers),
        TLS_TEST(another_hosts_certificate_is_refused),
        TLS_TEST(an_expired_certificate_is_refused),
        TLS_TEST(files_that_do_not_fit_are_named),
        TLS_TEST(in_the_clear_and_encrypted_do_not_mix),
        TLS_TEST(a_stranger_cannot_send_much),
        TLS_TEST(what_was_recorded_cannot_be_replayed),
        TLS_TEST(nonsense_on_the_wire_is_refused),
        TLS_TEST(a_thousand_half_open_connections_do_no_harm),
        TLS_TEST(a_caller_that_does_not_identify_itself_is_closed),
        TLS_TEST(without_a_certificate_there_is_no_handshake),
        TLS_TEST(old_versions_and_ciphers_are_refused),
        TLS_TEST(the_newest_version_is_spoken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
