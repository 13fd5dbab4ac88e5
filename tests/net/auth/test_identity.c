// Who is admitted while the tokens file changes under a connection, and what a process that holds
// keys gives away.
#include "net/auth/identity.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW 1000000

struct fixture {
    struct identity identity;
    struct holder holder;
    char *token; // of ann, who may submit until NOW + 100
    struct caller caller;
    struct err err;
};

static char *add(struct fixture *f, const char *tenant, enum caller_role role, int64_t expires_s)
{
    char *text = NULL;

    assert_int_equal(tokens_add(f->identity.tokens, tenant, role, NOW, expires_s, &text, NULL), 0);
    return text;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->identity.tokens = tokens_create();
    f->token = add(f, "ann", CALLER_SUBMIT, NOW + 100);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    identity_release(&f->identity);
    identity_release(&f->identity); // a second time is harmless
    free(f->token);
    free(f);
    return 0;
}

static int admit(struct fixture *f, const char *token, enum op op, int64_t now_s)
{
    err_clear(&f->err);
    f->caller = (struct caller){.tenant = NULL};
    return identity_admit(&f->identity, &f->holder, token, op, now_s, &f->caller, &f->err);
}

// Replaces the tokens by those of a file, as a reload does.
static void reload(struct fixture *f, const char *role)
{
    struct strbuf text = STRBUF_INIT;
    struct tokens *tokens = NULL;

    tokens_write(f->identity.tokens, &text);
    char *at = strstr(text.data, " submit ");
    assert_non_null(at);
    char *changed =
        xasprintf("%.*s %s %s", (int)(at - text.data), text.data, role, at + strlen(" submit "));
    assert_int_equal(tokens_parse(&tokens, changed, "tokens", NULL), 0);
    tokens_free(f->identity.tokens);
    f->identity.tokens = tokens;
    free(changed);
    strbuf_release(&text);
}

static void a_token_is_shown_once_and_names_the_caller(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(admit(f, f->token, OP_HELLO, NOW), 0);
    assert_string_equal(f->caller.tenant, "ann");
    assert_int_equal(f->caller.role, CALLER_SUBMIT);
    memset(f->token, 'x', strlen(f->token)); // the connection keeps nothing of the text
    assert_int_equal(admit(f, NULL, OP_SUBMIT, NOW), 0);
    assert_string_equal(f->caller.tenant, "ann");
    assert_ptr_equal(f->caller.tenant, f->holder.tenant);
}

static void a_wrong_token_is_denied_and_does_not_replace_the_right_one(void **state)
{
    static const char *const bad[] = {"", "kc1.ann.", "kc1.ann.00", "ann", "kc1.bob.00"};
    struct fixture *f = *state;

    assert_int_equal(admit(f, f->token, OP_HELLO, NOW), 0);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(admit(f, bad[i], OP_STATUS, NOW), ERR_DENIED);
        assert_null(f->caller.tenant);
        assert_true(f->err.text[0] != '\0');
    }
    assert_int_equal(admit(f, NULL, OP_SUBMIT, NOW), 0);
    // Another tenant's token takes its place, with that tenant's role.
    char *other = add(f, "olga", CALLER_OBSERVE, 0);
    assert_int_equal(admit(f, other, OP_SUBMIT, NOW), ERR_DENIED);
    assert_non_null(strstr(f->err.text, "olga has the role observe"));
    assert_int_equal(admit(f, NULL, OP_STATUS, NOW), 0);
    assert_string_equal(f->caller.tenant, "olga");
    free(other);
}

static void a_new_role_counts_at_once(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(admit(f, f->token, OP_SUBMIT, NOW), 0);
    reload(f, "submit");
    assert_int_equal(admit(f, NULL, OP_SUBMIT, NOW), 0);
    assert_int_equal(admit(f, NULL, OP_DRAIN, NOW), ERR_DENIED);
    reload(f, "admin");
    assert_int_equal(admit(f, NULL, OP_DRAIN, NOW), 0);
    assert_int_equal(f->caller.role, CALLER_ADMIN);
    assert_true(identity_token_is_listed(&f->identity, &f->holder));
}

static void a_token_ends_in_the_second_that_it_names(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(admit(f, f->token, OP_SUBMIT, NOW + 99), 0);
    assert_int_equal(admit(f, NULL, OP_SUBMIT, NOW + 100), ERR_DENIED);
    assert_string_equal(f->err.text, "the token of ann has expired; ask for a new one");
    assert_int_equal(admit(f, f->token, OP_SUBMIT, NOW + 100), ERR_DENIED);
    // It is still in the file, so that nobody ends the connection for it.
    assert_true(identity_token_is_listed(&f->identity, &f->holder));
    assert_int_equal(tokens_remove(f->identity.tokens, "ann", NULL), 0);
    assert_false(identity_token_is_listed(&f->identity, &f->holder));
    assert_int_equal(admit(f, NULL, OP_SUBMIT, NOW), ERR_DENIED);
    assert_non_null(strstr(f->err.text, "was revoked"));
}

static void a_protected_process_writes_no_core_and_cannot_be_read(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit limit = {1, 1};

        identity_protect_process();
        bool good = getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 &&
                    limit.rlim_max == 0 && prctl(PR_GET_DUMPABLE) == 0;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_shown_once_and_names_the_caller),
        TEST(a_wrong_token_is_denied_and_does_not_replace_the_right_one),
        TEST(a_new_role_counts_at_once),
        TEST(a_token_ends_in_the_second_that_it_names),
        TEST(a_protected_process_writes_no_core_and_cannot_be_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
