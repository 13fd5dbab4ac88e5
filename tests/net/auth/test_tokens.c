// The tokens file, whom a server admits by it, and where a server may listen.
#include "common/file.h"
#include "common/mem.h"
#include "net/auth/identity.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define NOW 1790000000
#define HEX32 "00112233445566778899aabbccddeeff"

static char *add(struct tokens *tokens, const char *tenant, enum caller_role role,
                 int64_t expires_s)
{
    struct err err = ERR_INIT;
    char *text = NULL;

    if (tokens_add(tokens, tenant, role, NOW, expires_s, &text, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return text;
}

static void what_is_written_is_read_again(void **state)
{
    struct tokens *tokens = tokens_create();
    char *alice = add(tokens, "alice", CALLER_SUBMIT, 0);
    char *bob = add(tokens, "bob_2", CALLER_ADMIN, NOW + 86400);

    (void)state;
    struct strbuf text = STRBUF_INIT;
    tokens_write(tokens, &text);
    assert_null(strstr(strbuf_text(&text), strrchr(alice, '.') + 1));
    struct tokens *again;
    assert_int_equal(tokens_parse(&again, strbuf_text(&text), "file", NULL), 0);
    struct strbuf text_again = STRBUF_INIT;
    tokens_write(again, &text_again);
    assert_string_equal(strbuf_text(&text), strbuf_text(&text_again));
    const struct token *row;
    assert_int_equal(tokens_check(again, bob, NOW, &row, NULL), 0);
    assert_string_equal(row->tenant, "bob_2");
    assert_int_equal(row->role, CALLER_ADMIN);
    assert_int_equal(row->expires_s, NOW + 86400);
    assert_int_equal(tokens_remove(again, "alice", NULL), 0);
    assert_int_equal(tokens_remove(again, "alice", NULL), ERR_NOT_FOUND);
    assert_int_equal(tokens_check(again, alice, NOW, &row, NULL), ERR_DENIED);
    assert_int_equal(tokens_check(again, bob, NOW, &row, NULL), 0);
    free(alice);
    free(bob);
    strbuf_release(&text);
    strbuf_release(&text_again);
    tokens_free(tokens);
    tokens_free(again);
}

static void every_other_token_is_refused(void **state)
{
    struct tokens *tokens = tokens_create();
    char *right = add(tokens, "alice", CALLER_SUBMIT, NOW + 10);
    char *other = add(tokens, "bob", CALLER_SUBMIT, 0);

    (void)state;
    const struct token *row = NULL;
    assert_int_equal(tokens_check(tokens, right, NOW + 9, &row, NULL), 0);
    struct err err = ERR_INIT;
    assert_int_equal(tokens_check(tokens, right, NOW + 10, &row, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "has expired"));
    char *wrong;
    for (size_t i = 0; i < strlen(right); i++) { // every character counts
        wrong = xstrdup(right);
        wrong[i] = wrong[i] == '1' ? '2' : '1';
        assert_int_equal(tokens_check(tokens, wrong, NOW, &row, NULL), ERR_DENIED);
        wrong[i] = '\0';
        assert_int_equal(tokens_check(tokens, wrong, NOW, &row, NULL), ERR_DENIED);
        free(wrong);
    }
    wrong = xasprintf("kc1.alice%s", strrchr(other, '.')); // the secret of another tenant
    err_clear(&err);
    assert_int_equal(tokens_check(tokens, wrong, NOW, &row, &err), ERR_DENIED);
    assert_null(strstr(err.text, strrchr(wrong, '.') + 1));
    free(wrong);
    wrong = xasprintf("%s0", right);
    assert_int_equal(tokens_check(tokens, wrong, NOW, &row, NULL), ERR_DENIED);
    free(wrong);
    assert_int_equal(tokens_check(tokens, "kc1..", NOW, &row, NULL), ERR_DENIED);
    assert_int_equal(tokens_check(tokens, "", NOW, &row, NULL), ERR_DENIED);
    free(right);
    free(other);
    tokens_free(tokens);
}

static void a_wrong_line_is_named(void **state)
{
    static const struct {
        const char *text;
        const char *reason;
    } bad[] = {
        {"alice submit\n", "file, line 1: not the 6 fields"},
        {"# x\n\nalice submit 2026-01-31T23:59:59Z - " HEX32 " " HEX32 HEX32 " x\n",
         "line 3: not the 6"},
        {"a/b submit 2026-01-31T23:59:59Z - " HEX32 " " HEX32 HEX32, "\"a/b\" cannot be a name"},
        {"-a submit 2026-01-31T23:59:59Z - " HEX32 " " HEX32 HEX32, "cannot be a name"},
        {"alice root 2026-01-31T23:59:59Z - " HEX32 " " HEX32 HEX32, "\"root\" is no role"},
        {"alice admin 2026-02-31T23:59:59Z - " HEX32 " " HEX32 HEX32, "no time of creation"},
        {"alice admin now - " HEX32 " " HEX32 HEX32, "no time of creation"},
        {"alice admin 2026-01-31T23:59:59Z never " HEX32 " " HEX32 HEX32, "no time of expiry"},
        {"alice admin 2026-01-31T23:59:59Z - " HEX32 " " HEX32, "salt or digest"},
        {"alice admin 2026-01-31T23:59:59Z - " HEX32 "00 " HEX32 HEX32, "salt or digest"},
        {"alice admin 2026-01-31T23:59:59Z - " HEX32 " " HEX32 HEX32 "\n"
         "alice submit 2026-01-31T23:59:59Z - " HEX32 " " HEX32 HEX32,
         "line 2: alice has a token already"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct tokens *tokens = NULL;
        struct err err = ERR_INIT;

        assert_int_equal(tokens_parse(&tokens, bad[i].text, "file", &err), ERR_INVALID);
        if (!strstr(err.text, bad[i].reason)) {
            fail_msg("\"%s\" instead of \"%s\"", err.text, bad[i].reason);
        }
    }
}

static void a_file_that_others_may_read_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    char *dir = NULL;
    assert_int_equal(file_make_temp_dir(&dir, "kcast-tokens", &err), 0);
    char *path = xasprintf("%s/tokens", dir);
    assert_int_equal(file_replace(path, "# none\n", 7, false, &err), 0);
    assert_int_equal(chmod(path, 0640), 0);
    struct tokens *tokens = NULL;
    assert_int_equal(tokens_read(&tokens, path, false, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "chmod 600"));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(tokens_read(&tokens, path, false, NULL), 0);
    assert_int_equal(tokens_count(tokens), 0);
    tokens_free(tokens);
    assert_int_equal(file_remove_tree(dir, NULL), 0);
    free(path);
    free(dir);
}

// --- who is admitted

static void every_operation_has_a_role(void **state)
{
    (void)state;
#define X(number, id, request, reply, text) assert_true(caller_op_is_listed(OP_##id));
    DAEMON_OPS(X)
    WORKER_OPS(X)
#undef X
    assert_int_equal(caller_role_for(OP_STATUS), CALLER_OBSERVE);
    assert_int_equal(caller_role_for(OP_SUBMIT), CALLER_SUBMIT);
    assert_int_equal(caller_role_for(OP_DRAIN), CALLER_ADMIN);
    assert_int_equal(caller_role_for(0), CALLER_ADMIN);
    assert_int_equal(caller_role_for(UINT64_MAX), CALLER_ADMIN);
}

static int admit(const struct identity *identity, struct holder *holder, const char *token,
                 enum op op, int64_t now_s, struct err *err)
{
    struct caller caller = {0};
    int rc = identity_admit(identity, holder, token, op, now_s, &caller, err);

    if (rc == 0) {
        assert_string_equal(caller.tenant, identity->tokens ? holder->tenant : "local");
    }
    return rc;
}

static void a_connection_has_the_right_of_its_token(void **state)
{
    struct identity identity = {.tokens = tokens_create()};
    char *looker = add(identity.tokens, "looker", CALLER_OBSERVE, 0);
    char *worker = add(identity.tokens, "worker", CALLER_SUBMIT, NOW + 100);

    (void)state;
    struct holder holder = {0};
    struct err err = ERR_INIT;
    assert_int_equal(admit(&identity, &holder, NULL, OP_STATUS, NOW, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "no token was shown"));
    assert_int_equal(admit(&identity, &holder, looker, OP_HELLO, NOW, NULL), 0);
    assert_int_equal(admit(&identity, &holder, NULL, OP_STATUS, NOW, NULL), 0);
    err_clear(&err);
    assert_int_equal(admit(&identity, &holder, NULL, OP_SUBMIT, NOW, &err), ERR_DENIED);
    assert_string_equal(err.text, "looker has the role observe, and SUBMIT takes submit");
    assert_int_equal(admit(&identity, &holder, worker, OP_SUBMIT, NOW, NULL), 0);
    assert_int_equal(admit(&identity, &holder, NULL, OP_DRAIN, NOW, NULL), ERR_DENIED);
    assert_int_equal(admit(&identity, &holder, NULL, OP_SUBMIT, NOW + 100, NULL), ERR_DENIED);
    assert_int_equal(admit(&identity, &holder, NULL, OP_SUBMIT, NOW, NULL), 0);
    assert_true(identity_token_is_listed(&identity, &holder));
    // A new token of the same tenant does not renew the old one.
    assert_int_equal(tokens_remove(identity.tokens, "worker", NULL), 0);
    free(worker);
    worker = add(identity.tokens, "worker", CALLER_SUBMIT, 0);
    assert_false(identity_token_is_listed(&identity, &holder));
    err_clear(&err);
    assert_int_equal(admit(&identity, &holder, NULL, OP_STATUS, NOW, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "was revoked"));
    free(looker);
    free(worker);
    identity_release(&identity);
}

static void on_loopback_nobody_is_asked(void **state)
{
    (void)state;
    struct identity identity = {0};
    struct holder holder = {0};
    assert_int_equal(admit(&identity, &holder, NULL, OP_DRAIN, NOW, NULL), 0);
    assert_int_equal(admit(&identity, &holder, "whatever", OP_DRAIN, NOW, NULL), 0);
    assert_true(identity_token_is_listed(&identity, &holder));
}

static void listening_anywhere_takes_all_four_files(void **state)
{
    static const struct identity_files all = {"ca", "cert", "key", "tokens"};
    static const struct {
        const char *url;
        struct identity_files files;
        enum err_code code;
        const char *reason;
    } bad[] = {
        {"tcp://0.0.0.0:1", {0}, ERR_DENIED, "not on loopback"},
        {"tcp://gpu1:1", {"ca", "cert", "key", "tokens"}, ERR_DENIED, "not on loopback"},
        {"tls://0.0.0.0:1", {0}, ERR_DENIED, "needs --tls-ca"},
        {"tls://0.0.0.0:1", {"ca", "cert", "key", NULL}, ERR_DENIED, "--tokens"},
        {"tls://127.0.0.1:1", {NULL, "cert", "key", "tokens"}, ERR_DENIED, "needs --tls-ca"},
        {"tcp://127.0.0.1:1", {.tokens = "tokens"}, ERR_USAGE, "not encrypted"},
    };

    (void)state;
    struct identity identity;
    struct err err = ERR_INIT;
    struct url url;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&err);
        assert_int_equal(url_parse(&url, bad[i].url, &err), 0);
        assert_int_equal(identity_load(&identity, &bad[i].files, &url, bad[i].url, &err),
                         bad[i].code);
        assert_non_null(strstr(err.text, bad[i].reason));
    }
    err_clear(&err);
    assert_int_equal(url_parse(&url, "tls://0.0.0.0:1", &err), 0);
    assert_int_equal(identity_load(&identity, &all, &url, "x", &err), ERR_NOT_FOUND);
    assert_int_equal(url_parse(&url, "tcp://[::1]:1", NULL), 0);
    assert_int_equal(identity_load(&identity, &(struct identity_files){0}, &url, "x", NULL), 0);
    assert_null(identity.tls);
    assert_null(identity.tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(every_other_token_is_refused),
        cmocka_unit_test(a_wrong_line_is_named),
        cmocka_unit_test(a_file_that_others_may_read_is_refused),
        cmocka_unit_test(every_operation_has_a_role),
        cmocka_unit_test(a_connection_has_the_right_of_its_token),
        cmocka_unit_test(on_loopback_nobody_is_asked),
        cmocka_unit_test(listening_anywhere_takes_all_four_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
