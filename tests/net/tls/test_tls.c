// A service and remotes over TLS: what is served, what a reload changes, and the authority's files.
#include "tests/net/tls_fixture.h"

// --- what is served

static void a_good_caller_is_served(void **state)
{
    struct tls_fixture *s = *state;

    connect_as(s, "ours", "alice", s->submit_token);
    struct hello_reply hello;
    struct err err = ERR_INIT;
    assert_int_equal(remote_hello_sync(s->f.remote, "kcastd", &hello, &err), 0);
    message_clear(&hello_reply_message, &hello);
    for (int i = 0; i < 100; i++) {
        call_status(&s->f);
    }
    run_until(&s->f, 100);
    assert_int_equal(s->f.successes, 100);
    assert_int_equal(service_refusal_count(s->f.service), 0);
}

// Each message takes many TLS records and more bytes than the kernel takes at once.
static void large_messages_are_whole(void **state)
{
    struct tls_fixture *s = *state;
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

// The certificate is also checked against a name, and not only against an address.
static void a_name_is_checked_too(void **state)
{
    struct tls_fixture *s = *state;
    struct err err = ERR_INIT;
    struct tls *tls = try_tls(s, "ours", "alice", &err);
    char *url = xasprintf("tls://localhost%s", strrchr(service_url(s->f.service), ':'));

    assert_int_equal(remote_create_tls(&s->f.remote, &s->f.loop, url, tls, s->submit_token, &err),
                     0);
    expect_success(&s->f);
    tls_release(tls);
    free(url);
}

// A service that is told nng's word for TLS serves those who call it by either.
static void both_words_for_tls_reach_a_service(void **state)
{
    struct tls_fixture *s = *state;
    struct err err = ERR_INIT;

    service_close(s->f.service);
    open_service(&s->f, "tls+tcp://127.0.0.1:0");
    const char *as_tls = service_url(s->f.service);
    assert_int_equal(strncmp(as_tls, "tls://127.0.0.1:", 16), 0);
    char *as_nng = xasprintf("tls+tcp%s", as_tls + strlen("tls"));
    const char *const urls[] = {as_tls, as_nng};
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        struct tls *tls = try_tls(s, "ours", "alice", &err);
        remote_close(s->f.remote);
        assert_int_equal(
            remote_create_tls(&s->f.remote, &s->f.loop, urls[i], tls, s->submit_token, &err), 0);
        tls_release(tls);
        expect_success(&s->f);
    }
    free(as_nng);
}

static void a_full_service_reads_on_when_there_is_room(void **state)
{
    struct tls_fixture *s = *state;

    connect_as(s, "ours", "alice", s->submit_token);
    for (int i = 0; i < 40; i++) { // eight fit, and the others wait encrypted
        call(&s->f, OP_ACK, &empty_message, &(struct empty){0}, &waited_message, CALL_MS);
    }
    for (size_t done = 0; done < 40; done++) {
        run_until_held(&s->f, done + 1);
        answer_held(&s->f, done);
    }
    run_until(&s->f, 40);
    assert_int_equal(s->f.successes, 40);
}

// --- reloading

static void a_revoked_token_loses_its_right_at_once(void **state)
{
    struct tls_fixture *s = *state;

    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    call_wait(&s->f, CALL_MS); // parked
    run_until_held(&s->f, 1);
    struct err err = ERR_INIT;
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
    struct tls_fixture *s = *state;

    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    struct err err = ERR_INIT;
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
    struct tls_fixture *s = *state;
    struct authority *theirs = open_authority(s, "theirs");

    connect_as(s, "ours", "alice", s->submit_token);
    expect_success(&s->f);
    issue(s, theirs, "new-server", hosts, 1, -DAY, DAY);
    authority_free(theirs);
    char *from[3];
    from[0] = xasprintf("%s/new-server/ca.pem", s->dir);
    from[1] = xasprintf("%s/new-server/cert.pem", s->dir);
    from[2] = xasprintf("%s/new-server/key.pem", s->dir);
    for (size_t i = 0; i < ARRAY_LEN(from); i++) {
        assert_int_equal(rename(from[i], s->path[i]), 0);
        free(from[i]);
    }
    struct err err = ERR_INIT;
    assert_int_equal(service_reload(s->f.service, &err), 0);
    expect_success(&s->f); // the old connection goes on
    s->other = s->f.remote;
    s->f.remote = NULL;
    connect_as(s, "theirs", "mallory", s->submit_token);
    expect_success(&s->f);
}

// --- the authority

static void nothing_is_overwritten(void **state)
{
    struct tls_fixture *s = *state;
    struct authority *ours = open_authority(s, "ours");
    struct certificate_spec spec = {.name = "alice", .from_s = s->now_s, .to_s = s->now_s + DAY};
    char *dir = xasprintf("%s/alice", s->dir);
    char *cert = xasprintf("%s/cert.pem", dir);
    struct bytes before = {0};
    struct err err = ERR_INIT;

    assert_int_equal(file_read(&before, cert, 8192, &err), 0);
    bool made = true;
    assert_int_equal(authority_issue(ours, dir, &spec, &made, &err), 0);
    assert_false(made);
    struct bytes after = {0};
    assert_int_equal(file_read(&after, cert, 8192, &err), 0);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    struct stat info;
    assert_int_equal(stat(cert, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    // A folder with only some of the files is not touched either.
    assert_int_equal(unlink(cert), 0);
    assert_int_equal(authority_issue(ours, dir, &spec, &made, &err), ERR_SYSTEM);
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
    struct tls_fixture *s = *state;
    struct authority *ours = open_authority(s, "ours");
    char *dir = xasprintf("%s/bad", s->dir);
    bool made;

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct certificate_spec spec = {.name = "bad",
                                        .hosts = &bad[i],
                                        .host_count = 1,
                                        .from_s = s->now_s,
                                        .to_s = s->now_s + DAY};
        assert_int_equal(authority_issue(ours, dir, &spec, &made, NULL), ERR_INVALID);
    }
    free(dir);
    authority_free(ours);
}

static void what_is_kept_is_what_was_asked_for(void **state)
{
    static const char *const made_for[] = {"gpu1.example", "10.0.0.5", "::1"};
    static const char *const same[] = {"::1", "GPU1.example", "10.0.0.5"};
    static const char *const other[] = {"gpu1.example", "gpu2.example"};
    static const char *const address[] = {"10.0.0.6"};
    struct tls_fixture *s = *state;
    struct authority *ours = open_authority(s, "ours");
    struct authority *theirs = open_authority(s, "theirs");
    char *dir = xasprintf("%s/kept", s->dir);
    char *old = xasprintf("%s/old", s->dir);
    struct certificate_spec spec = {.name = "server", .from_s = s->now_s, .to_s = s->now_s + DAY};
    struct certificate_spec past = {
        .name = "old", .from_s = s->now_s - 2 * DAY, .to_s = s->now_s - DAY};

    spec.hosts = made_for;
    spec.host_count = ARRAY_LEN(made_for);
    struct err err = ERR_INIT;
    bool made;
    assert_int_equal(authority_issue(ours, dir, &spec, &made, &err), 0);
    assert_true(made);
    spec.hosts = same;
    assert_int_equal(authority_issue(ours, dir, &spec, &made, &err), 0);
    assert_false(made);
    spec.hosts = other;
    spec.host_count = ARRAY_LEN(other);
    assert_int_equal(authority_issue(ours, dir, &spec, &made, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "does not name \"gpu2.example\""));
    err_clear(&err);
    spec.hosts = address;
    spec.host_count = ARRAY_LEN(address);
    assert_int_equal(authority_issue(ours, dir, &spec, &made, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "does not name \"10.0.0.6\""));
    err_clear(&err);
    spec.hosts = made_for;
    assert_int_equal(authority_issue(theirs, dir, &spec, &made, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "not signed by"));
    err_clear(&err);
    assert_int_equal(authority_issue(ours, old, &past, &made, &err), 0);
    assert_int_equal(authority_issue(ours, old, &past, &made, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "has expired"));
    free(old);
    free(dir);
    authority_free(theirs);
    authority_free(ours);
}

// The error names the expired authority and not a certificate that it has signed.
static void an_old_authority_is_not_used(void **state)
{
    struct tls_fixture *s = *state;
    char *dir = xasprintf("%s/long-ago", s->dir);
    struct err err = ERR_INIT;

    assert_int_equal(file_make_dirs(dir, &err), 0);
    struct authority *authority = NULL;
    bool made;
    assert_int_equal(authority_open(&authority, dir, s->now_s - 11 * 366 * DAY, &made, &err), 0);
    authority_free(authority);
    assert_int_equal(authority_open(&authority, dir, s->now_s, &made, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "the authority "));
    assert_non_null(strstr(err.text, "long-ago/ca.pem has expired"));
    free(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TLS_TEST(a_good_caller_is_served),
        TLS_TEST(large_messages_are_whole),
        TLS_TEST(a_name_is_checked_too),
        TLS_TEST(both_words_for_tls_reach_a_service),
        TLS_TEST(a_full_service_reads_on_when_there_is_room),
        TLS_TEST(a_revoked_token_loses_its_right_at_once),
        TLS_TEST(a_reload_that_fails_changes_nothing),
        TLS_TEST(new_certificates_are_taken_up),
        TLS_TEST(nothing_is_overwritten),
        TLS_TEST(wrong_hosts_are_named),
        TLS_TEST(what_is_kept_is_what_was_asked_for),
        TLS_TEST(an_old_authority_is_not_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
