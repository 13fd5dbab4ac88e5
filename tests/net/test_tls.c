// A service and remotes over TLS: who gets in, who does not, and that the others are served
// meanwhile. Certificates and tokens are made for each test.
#include "tests/net/fixture.h"

#include "common/file.h"
#include "net/authority.h"
#include "net/stream.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define DAY 86400

struct scene {
    struct fixture f; // first
    char *dir;
    int64_t now_s;
    struct tokens *tokens; // as in the file
    char *submit_token;    // of alice
    char *observe_token;   // of olga
    char *path[4];         // ca, cert, key, tokens of the server
    struct remote *other;
};

static struct authority *open_authority(struct scene *s, const char *name)
{
    char *dir = xasprintf("%s/%s", s->dir, name);
    struct authority *authority = NULL;
    struct err err = ERR_INIT;
    bool made;

    if (file_make_dirs(dir, &err) != 0 ||
        authority_open(&authority, dir, s->now_s, &made, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(dir);
    return authority;
}

static void issue(struct scene *s, struct authority *authority, const char *name,
                  const char *const *hosts, size_t host_count, int64_t from_s, int64_t to_s)
{
    struct authority_order order = {.name = name,
                                    .hosts = hosts,
                                    .host_count = host_count,
                                    .from_s = s->now_s + from_s,
                                    .to_s = s->now_s + to_s};
    char *dir = xasprintf("%s/%s", s->dir, name);
    struct err err = ERR_INIT;
    bool made = false;

    if (authority_issue(authority, dir, &order, &made, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(made);
    free(dir);
}

static void write_tokens(struct scene *s)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = ERR_INIT;

    tokens_write(s->tokens, &text);
    if (file_replace(s->path[3], text.data, text.len, false, &err) != 0 ||
        chmod(s->path[3], 0600) != 0) {
        fail_msg("%s", err.text);
    }
    strbuf_release(&text);
}

// NULL when the files are refused, and why in *err.
static struct tls *try_tls(struct scene *s, const char *ca_of, const char *name, struct err *err)
{
    char *ca = xasprintf("%s/%s/ca.pem", s->dir, ca_of);
    char *cert = xasprintf("%s/%s/cert.pem", s->dir, name);
    char *key = xasprintf("%s/%s/key.pem", s->dir, name);
    struct tls_files files = {.ca = ca, .cert = cert, .key = key};
    struct tls *tls = NULL;

    (void)!tls_create(&tls, TLS_CALLER, &files, err);
    free(ca);
    free(cert);
    free(key);
    return tls;
}

// The fixture's remote is one with these certificates and this token.
static void connect_as(struct scene *s, const char *ca_of, const char *name, const char *token)
{
    struct err err = ERR_INIT;
    struct tls *tls = try_tls(s, ca_of, name, &err);

    if (!tls) {
        fail_msg("%s", err.text);
    }
    remote_close(s->f.remote);
    assert_int_equal(
        remote_create_tls(&s->f.remote, &s->f.loop, service_url(s->f.service), tls, token, &err),
        0);
    tls_release(tls);
}

static void expect_denied(struct scene *s, const char *reason)
{
    int answers = s->f.answers;

    call_status(&s->f);
    run_until(&s->f, answers + 1);
    assert_int_equal(s->f.last_error, ERR_DENIED);
    if (!strstr(s->f.last_text, reason)) {
        fail_msg("\"%s\" instead of \"%s\"", s->f.last_text, reason);
    }
}

static void open_tls_service(struct scene *s)
{
    s->f.config.files = (struct identity_files){s->path[0], s->path[1], s->path[2], s->path[3]};
    open_service(&s->f, "tls://127.0.0.1:0");
}

static int set_up_tls(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "::1", "localhost", "gpu-host.example"};
    static const char *const elsewhere[] = {"10.1.2.3", "other.example"};
    struct scene *s = xcalloc(1, sizeof(*s));
    struct authority *ours;
    struct authority *theirs;
    struct err err = ERR_INIT;

    s->now_s = (int64_t)time(NULL);
    assert_int_equal(file_make_temp_dir(&s->dir, "kcast-tls", &err), 0);
    ours = open_authority(s, "ours");
    theirs = open_authority(s, "theirs");
    issue(s, ours, "server", hosts, ARRAY_LEN(hosts), -DAY, DAY);
    issue(s, ours, "elsewhere", elsewhere, ARRAY_LEN(elsewhere), -DAY, DAY);
    issue(s, ours, "alice", NULL, 0, -DAY, DAY);
    issue(s, theirs, "mallory", NULL, 0, -DAY, DAY);
    authority_free(ours);
    authority_free(theirs);
    s->path[0] = xasprintf("%s/server/ca.pem", s->dir);
    s->path[1] = xasprintf("%s/server/cert.pem", s->dir);
    s->path[2] = xasprintf("%s/server/key.pem", s->dir);
    s->path[3] = xasprintf("%s/tokens", s->dir);
    s->tokens = tokens_create();
    assert_int_equal(
        tokens_add(s->tokens, "alice", CALLER_SUBMIT, s->now_s, 0, &s->submit_token, NULL), 0);
    assert_int_equal(
        tokens_add(s->tokens, "olga", CALLER_OBSERVE, s->now_s, 0, &s->observe_token, NULL), 0);
    write_tokens(s);
    s->f.config = (struct service_config){.exchanges_max = 8,
                                          .parked_max = 5,
                                          .message_max = 1 << 20,
                                          .epoch = 77,
                                          .on_request = on_request,
                                          .on_refusal = on_refusal,
                                          .owner = &s->f};
    s->f.blob_data = xcalloc(1, BLOB_LEN + 1);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&s->f.loop), 0);
    open_tls_service(s);
    *state = s;
    return 0;
}

static int tear_down_tls(void **state)
{
    struct scene *s = *state;

    remote_close(s->f.remote);
    remote_close(s->other);
    service_close(s->f.service);
    (void)uv_run(&s->f.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->f.loop), 0);
    assert_int_equal(file_remove_tree(s->dir, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(s->path); i++) {
        free(s->path[i]);
    }
    free(s->submit_token);
    free(s->observe_token);
    tokens_free(s->tokens);
    free(s->f.blob_data);
    free(s->dir);
    free(s);
    return 0;
}

// --- who gets in

static void a_good_caller_is_served(void **state)
{
    struct scene *s = *state;
    struct hello_reply hello;
    struct err err = ERR_INIT;

    connect_as(s, "ours", "alice", s->submit_token);
    assert_int_equal(remote_hello(s->f.remote, "kcastd", &hello, &err), 0);
    message_clear(&hello_reply_message, &hello);
    for (int i = 0; i < 100; i++) {
        call_status(&s->f);
    }
    run_until(&s->f, 100);
    assert_int_equal(s->f.successes, 100);
    assert_int_equal(service_refusal_count(s->f.service), 0);
}

// Many records both ways, more than the kernel takes at once.
static void large_messages_are_whole(void **state)
{
    struct scene *s = *state;
    struct digest digest = digest_of("x", 1);
    struct blob_have have = {.digests = &digest, .digests_count = 1};

    for (size_t i = 0; i < BLOB_LEN; i++) {
        s->f.blob_data[i] = (unsigned char)(i * 31 + (i >> 8));
    }
    connect_as(s, "ours", "alice", s->submit_token);
    for (int i = 0; i < 6; i++) {
        call(&s->f, OP_BLOB_HAVE, &blob_have_message, &have, &blob_put_message, CALL_MS);
    }
    run_until(&s->f, 6);
    assert_int_equal(s->f.successes, 6);
}

// A name is compared as well as an address.
static void a_name_is_checked_too(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;
    struct tls *tls = try_tls(s, "ours", "alice", &err);
    char *url = xasprintf("tls://localhost%s", strrchr(service_url(s->f.service), ':'));

    assert_int_equal(remote_create_tls(&s->f.remote, &s->f.loop, url, tls, s->submit_token, &err),
                     0);
    expect_success(&s->f);
    tls_release(tls);
    free(url);
}

static void the_house_may_be_full(void **state)
{
    struct scene *s = *state;

    connect_as(s, "ours", "alice", s->submit_token);
    for (int i = 0; i < 40; i++) { // eight fit, the others wait encrypted
        call(&s->f, OP_ACK, &empty_message, &(struct empty){0}, &waited_message, CALL_MS);
    }
    for (size_t done = 0; done < 40; done++) {
        run_until_held(&s->f, done + 1);
        answer_held(&s->f, done);
    }
    run_until(&s->f, 40);
    assert_int_equal(s->f.successes, 40);
}

// --- who does not

static void strangers_are_refused_and_told_why(void **state)
{
    struct scene *s = *state;
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
    struct scene *s = *state;
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
    struct scene *s = *state;

    // The caller does not accept the server: another authority's certificate.
    connect_as(s, "theirs", "mallory", s->submit_token);
    expect_denied(s, "its certificate is not signed by our authority");
    // The server does not accept the caller: mallory knows our authority, and has not its
    // signature.
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
    struct scene *s = *state;
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
    struct scene *s = *state;
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

// One that expires while the program runs: loading it was fine then, so it is loaded a second
// before its end and used after it.
static void an_expired_certificate_is_refused(void **state)
{
    struct scene *s = *state;
    struct authority *ours = open_authority(s, "ours");
    struct err err = ERR_INIT;
    struct tls *tls = NULL;

    issue(s, ours, "late", NULL, 0, -DAY, -1);
    assert_null(try_tls(s, "ours", "late", &err));
    assert_non_null(strstr(err.text, "has expired"));
    issue(s, ours, "soon", NULL, 0, -DAY, 3);
    tls = try_tls(s, "ours", "soon", &err);
    authority_free(ours);
    if (!tls) {
        return; // this machine took three seconds to get here; the case above holds
    }
    while ((int64_t)time(NULL) <= s->now_s + 3) {
        (void)usleep(20000);
    }
    assert_int_equal(remote_create_tls(&s->f.remote, &s->f.loop, service_url(s->f.service), tls,
                                       s->submit_token, &err),
                     0);
    tls_release(tls);
    expect_denied(s, "our certificate has expired");
    assert_non_null(strstr(s->f.refusal, "its certificate has expired"));
}

static void files_that_do_not_fit_are_named(void **state)
{
    struct scene *s = *state;
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
    struct scene *s = *state;
    struct err err = ERR_INIT;
    struct tls *tls;
    char *url = xasprintf("tcp%s", service_url(s->f.service) + 3);

    // tcp:// to a tls:// port: what it greets with is no TLS.
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
    tls = try_tls(s, "ours", "alice", &err);
    assert_int_equal(remote_create_tls(&s->f.remote, &s->f.loop, url, tls, s->submit_token, &err),
                     0);
    call_status(&s->f);
    run_until(&s->f, 2);
    assert_int_equal(s->f.last_error, ERR_PROTOCOL);
    assert_int_equal(s->f.successes, 0);
    tls_release(tls);
    free(url);
}

// Before the token is known, a frame may not be large.
static void a_stranger_cannot_send_much(void **state)
{
    struct scene *s = *state;
    struct blob_put put = {.digest = digest_of("x", 1), .data = {s->f.blob_data, 200000}};

    connect_as(s, "ours", "alice", NULL);
    call(&s->f, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, CALL_MS);
    run_until(&s->f, 1);
    assert_int_equal(s->f.successes, 0);
    assert_non_null(strstr(s->f.refusal, "65536 are allowed"));
    connect_as(s, "ours", "alice", s->submit_token); // who is known may
    call(&s->f, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, CALL_MS);
    run_until(&s->f, 2);
    assert_int_equal(s->f.last_error, ERR_UNSUPPORTED); // it got as far as the handler
}

// --- bare sockets

// Copies bytes between a remote and the service, keeps what the remote sent, then sends it again.
static void what_was_recorded_cannot_be_replayed(void **state)
{
    struct scene *s = *state;
    struct strbuf record = STRBUF_INIT;
    struct err err = ERR_INIT;
    char data[16384];
    int listener = raw_listen(&s->f);
    char *middle = xstrdup(remote_url(s->f.remote));
    char *tls_url = xasprintf("tls%s", middle + 3);
    struct tls *tls = try_tls(s, "ours", "alice", &err);
    int caller;
    int server;

    remote_close(s->f.remote);
    assert_int_equal(
        remote_create_tls(&s->f.remote, &s->f.loop, tls_url, tls, s->submit_token, &err), 0);
    call_status(&s->f);
    caller = raw_accept(&s->f, listener);
    server = raw_connect(&s->f);
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
    struct scene *s = *state;
    int fd[ARRAY_LEN(bad)];

    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        fd[i] = raw_connect(&s->f);
        raw_send(&s->f, fd[i], bad[i].bytes, bad[i].len);
        expect_success(&s->f);
    }
    assert_true(service_refusal_count(s->f.service) >= 4);
    assert_int_equal(s->f.refusals, 1); // one line, and the others are counted
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        close(fd[i]);
    }
}

// Connections that say nothing, or only half of it, fill the house; who is known is served, also a
// new one; and they are gone in the end.
static void a_thousand_half_open_connections_do_no_harm(void **state)
{
    enum { STRANGERS = 1000 };
    struct scene *s = *state;
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
    connect_as(s, "ours", "alice", s->observe_token); // a new one makes room for itself
    expect_success(&s->f);
    assert_true(service_refusal_count(s->f.service) >= STRANGERS - 200);
    for (size_t i = 0; i < STRANGERS; i++) {
        close(fd[i]);
    }
    free(fd);
}

// Who stops in the middle of the handshake, and who has a certificate but no token, are cut.
static void who_does_not_say_who_he_is_is_cut(void **state)
{
    struct scene *s = *state;
    int fd;

    service_close(s->f.service);
    s->f.config.greeting_ms = 50;
    open_tls_service(s);
    fd = raw_connect(&s->f);
    raw_send(&s->f, fd, "\x16\x03\x01\x02\x00\x01", 6);
    while (service_refusal_count(s->f.service) == 0) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
    assert_string_equal(s->f.refusal, "no greeting and no valid token within 50 ms");
    close(fd);
    connect_as(s, "ours", "alice", NULL);
    expect_denied(s, "no token");
    while (service_refusal_count(s->f.service) < 3) {
        (void)uv_run(&s->f.loop, UV_RUN_ONCE);
    }
}

// --- reloading

static void a_revoked_token_loses_its_right_at_once(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;

    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    call_wait(&s->f, CALL_MS); // parked
    run_until_held(&s->f, 1);
    assert_int_equal(tokens_remove(s->tokens, "alice", &err), 0);
    write_tokens(s);
    assert_int_equal(service_reload(s->f.service, &err), 0);
    run_until(&s->f, 2);
    assert_int_equal(s->f.last_error, ERR_UNREACHABLE);
    assert_int_equal(s->f.drops, 1);
    assert_string_equal(s->f.refusal, "its token was revoked");
    expect_denied(s, "not known here");
    connect_as(s, "ours", "alice", s->observe_token);
    expect_success(&s->f);
}

static void a_reload_that_fails_changes_nothing(void **state)
{
    struct scene *s = *state;
    struct err err = ERR_INIT;

    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    assert_int_equal(file_replace(s->path[3], "alice\n", 6, false, &err), 0);
    assert_int_equal(chmod(s->path[3], 0600), 0);
    assert_int_equal(service_reload(s->f.service, &err), ERR_INVALID);
    expect_success(&s->f);
    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
}

static void new_certificates_are_taken_up(void **state)
{
    static const char *const hosts[] = {"127.0.0.1"};
    struct scene *s = *state;
    struct authority *theirs = open_authority(s, "theirs");
    struct err err = ERR_INIT;
    char *from[3];

    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    issue(s, theirs, "new-server", hosts, 1, -DAY, DAY);
    authority_free(theirs);
    from[0] = xasprintf("%s/new-server/ca.pem", s->dir);
    from[1] = xasprintf("%s/new-server/cert.pem", s->dir);
    from[2] = xasprintf("%s/new-server/key.pem", s->dir);
    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        assert_int_equal(rename(from[i], s->path[i]), 0);
        free(from[i]);
    }
    assert_int_equal(service_reload(s->f.service, &err), 0);
    expect_success(&s->f); // the connection that is there goes on
    s->other = s->f.remote;
    s->f.remote = NULL;
    connect_as(s, "theirs", "mallory", s->submit_token);
    expect_success(&s->f);
}

// --- the authority

static void nothing_is_overwritten(void **state)
{
    struct scene *s = *state;
    struct authority *ours = open_authority(s, "ours");
    struct authority_order order = {.name = "alice", .from_s = s->now_s, .to_s = s->now_s + DAY};
    char *dir = xasprintf("%s/alice", s->dir);
    char *cert = xasprintf("%s/cert.pem", dir);
    struct bytes before = {0};
    struct bytes after = {0};
    struct err err = ERR_INIT;
    struct stat info;
    bool made = true;

    assert_int_equal(file_read(&before, cert, 8192, &err), 0);
    assert_int_equal(authority_issue(ours, dir, &order, &made, &err), 0);
    assert_false(made);
    assert_int_equal(file_read(&after, cert, 8192, &err), 0);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    assert_int_equal(stat(cert, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    // Half of one that is there is not touched either.
    assert_int_equal(unlink(cert), 0);
    assert_int_equal(authority_issue(ours, dir, &order, &made, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "ca.pem"));
    bytes_clear(&before);
    bytes_clear(&after);
    free(cert);
    free(dir);
    authority_free(ours);
}

static void wrong_hosts_are_named(void **state)
{
    static const char *const bad[] = {"a b", "", "x/y", "ho\nst"};
    struct scene *s = *state;
    struct authority *ours = open_authority(s, "ours");
    char *dir = xasprintf("%s/bad", s->dir);
    bool made;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct authority_order order = {.name = "bad",
                                        .hosts = &bad[i],
                                        .host_count = 1,
                                        .from_s = s->now_s,
                                        .to_s = s->now_s + DAY};
        assert_int_equal(authority_issue(ours, dir, &order, &made, NULL), ERR_INVALID);
    }
    free(dir);
    authority_free(ours);
}

#define TLS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_tls, tear_down_tls)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(a_good_caller_is_served),
        TLS_TEST(large_messages_are_whole),
        TLS_TEST(a_name_is_checked_too),
        TLS_TEST(the_house_may_be_full),
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
        TLS_TEST(who_does_not_say_who_he_is_is_cut),
        TLS_TEST(a_revoked_token_loses_its_right_at_once),
        TLS_TEST(a_reload_that_fails_changes_nothing),
        TLS_TEST(new_certificates_are_taken_up),
        TLS_TEST(nothing_is_overwritten),
        TLS_TEST(wrong_hosts_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
