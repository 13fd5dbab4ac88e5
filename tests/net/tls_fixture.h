// A service over TLS and the files of its team. There are two authorities: "ours" has signed the
// certificates of the server and of alice, "theirs" that of mallory. alice has a token with the
// role submit and olga one with the role observe.
#ifndef TESTS_NET_TLS_FIXTURE_H
#define TESTS_NET_TLS_FIXTURE_H

#include "tests/net/fixture.h"

#include "common/file.h"
#include "net/rpc/stream.h"
#include "net/tls/authority.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define DAY 86400

struct tls_fixture {
    struct fixture f;
    char *dir;
    int64_t now_s;
    struct tokens *tokens; // what the tokens file holds
    char *submit_token;    // alice's token
    char *observe_token;   // olga's token
    char *path[4];         // the server's ca, cert, key and tokens
    struct remote *other;  // a second remote; may be NULL
};

static inline struct authority *open_authority(struct tls_fixture *s, const char *name)
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

static inline void issue(struct tls_fixture *s, struct authority *authority, const char *name,
                         const char *const *hosts, size_t host_count, int64_t from_s, int64_t to_s)
{
    struct certificate_spec spec = {.name = name,
                                    .hosts = hosts,
                                    .host_count = host_count,
                                    .from_s = s->now_s + from_s,
                                    .to_s = s->now_s + to_s};
    char *dir = xasprintf("%s/%s", s->dir, name);
    struct err err = ERR_INIT;
    bool made = false;

    if (authority_issue(authority, dir, &spec, &made, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(made);
    free(dir);
}

static inline void write_tokens(struct tls_fixture *s)
{
    struct strbuf text = STRBUF_INIT;

    tokens_write(s->tokens, &text);
    struct err err = ERR_INIT;
    if (file_replace(s->path[3], text.data, text.len, false, &err) != 0 ||
        chmod(s->path[3], 0600) != 0) {
        fail_msg("%s", err.text);
    }
    strbuf_release(&text);
}

// Returns NULL when the files are refused; *err then gives the reason.
static inline struct tls *try_tls(struct tls_fixture *s, const char *ca_of, const char *name,
                                  struct err *err)
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

// Replaces the fixture's remote by one with these certificates and this token.
static inline void connect_as(struct tls_fixture *s, const char *ca_of, const char *name,
                              const char *token)
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

static inline void expect_denied(struct tls_fixture *s, const char *reason)
{
    int answers = s->f.answers;

    call_status(&s->f);
    run_until(&s->f, answers + 1);
    assert_int_equal(s->f.last_error, ERR_DENIED);
    if (!strstr(s->f.last_text, reason)) {
        fail_msg("\"%s\" instead of \"%s\"", s->f.last_text, reason);
    }
}

static inline void open_tls_service(struct tls_fixture *s)
{
    s->f.config.files = (struct identity_files){s->path[0], s->path[1], s->path[2], s->path[3]};
    open_service(&s->f, "tls://127.0.0.1:0");
}

static inline int set_up_tls(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "::1", "localhost", "gpu-host.example"};
    static const char *const elsewhere[] = {"10.1.2.3", "other.example"};
    struct tls_fixture *s = xcalloc(1, sizeof(*s));

    s->now_s = (int64_t)time(NULL);
    struct err err = ERR_INIT;
    assert_int_equal(file_make_temp_dir(&s->dir, "kcast-tls", &err), 0);
    struct authority *ours = open_authority(s, "ours");
    struct authority *theirs = open_authority(s, "theirs");
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

static inline int tear_down_tls(void **state)
{
    struct tls_fixture *s = *state;

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

#define TLS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_tls, tear_down_tls)

#endif
