// Roles and tenants: which names are taken, and what belongs to whom.
#include "net/auth/caller.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void roles_are_parsed_by_their_names_alone(void **state)
{
    static const char *const bad[] = {"", "Admin", "admin ", "adm", "observer", "root"};

    (void)state;
    for (int role = CALLER_OBSERVE; role <= CALLER_ADMIN; role++) {
        enum caller_role parsed = (enum caller_role)99;

        assert_int_equal(caller_role_parse(&parsed, caller_role_name((enum caller_role)role), NULL),
                         0);
        assert_int_equal(parsed, role);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        enum caller_role parsed = CALLER_SUBMIT;
        struct err err = ERR_INIT;

        assert_int_equal(caller_role_parse(&parsed, bad[i], &err), ERR_INVALID);
        assert_int_equal(parsed, CALLER_SUBMIT);
        assert_non_null(strstr(err.text, "observe, submit and admin are"));
    }
}

static void a_tenant_has_a_short_plain_name(void **state)
{
    static const char good[][TENANT_MAX + 1] = {
        "a",
        "Z9",
        "_",
        "_-",
        "a-b_c",
        "0",
        "0123456789012345678901234567890123456789012345678901234567890123"};
    static const char *const bad[] = {
        "",
        "-",
        "-a",
        "a b",
        "a.b",
        "a/b",
        "a\n",
        "\xc3\xa4",
        "a\x7f",
        "kc1.a",
        "01234567890123456789012345678901234567890123456789012345678901234"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(caller_check_tenant(good[i], NULL), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;

        if (caller_check_tenant(bad[i], &err) != ERR_INVALID) {
            fail_msg("\"%s\" is taken", bad[i]);
        }
        assert_non_null(strstr(err.text, "at most 64 letters, digits, _ and -"));
    }
    assert_int_equal(caller_check_tenant(TENANT_LOCAL, NULL), 0);
}

static void only_an_administrator_owns_what_is_another_s(void **state)
{
    (void)state;
    for (int role = CALLER_OBSERVE; role <= CALLER_ADMIN; role++) {
        const struct caller caller = {.tenant = "ann", .role = (enum caller_role)role};

        assert_true(caller_owns(&caller, "ann"));
        assert_int_equal(caller_owns(&caller, "bob"), role == CALLER_ADMIN);
        assert_int_equal(caller_owns(&caller, "Ann"), role == CALLER_ADMIN);
        assert_int_equal(caller_owns(&caller, "anna"), role == CALLER_ADMIN);
        assert_int_equal(caller_owns(&caller, ""), role == CALLER_ADMIN);
    }
}

// What changes something for everybody is an administrator's; whoever only looks changes nothing.
static void each_role_may_do_what_its_name_says(void **state)
{
    static const struct {
        uint64_t op;
        enum caller_role role;
    } row[] = {
        {OP_HELLO, CALLER_OBSERVE},    {OP_WAIT, CALLER_OBSERVE},
        {OP_BUDGET, CALLER_OBSERVE},   {OP_WORKER_STATUS, CALLER_OBSERVE},
        {OP_BLOB_PUT, CALLER_SUBMIT},  {OP_BLOB_HAVE, CALLER_SUBMIT},
        {OP_CANCEL, CALLER_SUBMIT},    {OP_ACK, CALLER_SUBMIT},
        {OP_FORECAST, CALLER_SUBMIT},  {OP_OBSERVE, CALLER_SUBMIT},
        {OP_PROPOSE, CALLER_SUBMIT},   {OP_PROBE, CALLER_ADMIN},
        {OP_QUARANTINE, CALLER_ADMIN}, {OP_DRAIN, CALLER_ADMIN},
        {OP_RECALL, CALLER_SUBMIT},    {OP_RANK, CALLER_SUBMIT},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        assert_int_equal(caller_role_for(row[i].op), row[i].role);
    }
    // A number that is nobody's is not listed, and takes the highest role.
    size_t listed = 0;
    for (uint64_t op = 0; op < 1000; op++) {
        listed += caller_op_is_listed(op);
        if (!caller_op_is_listed(op)) {
            assert_int_equal(caller_role_for(op), CALLER_ADMIN);
        }
    }
    size_t known = 0;
#define X(number, id, request, reply, text) known++;
    DAEMON_OPS(X)
    WORKER_OPS(X)
#undef X
    assert_int_equal(listed, known);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_are_parsed_by_their_names_alone),
        cmocka_unit_test(a_tenant_has_a_short_plain_name),
        cmocka_unit_test(only_an_administrator_owns_what_is_another_s),
        cmocka_unit_test(each_role_may_do_what_its_name_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
