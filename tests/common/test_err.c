#include "common/err.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static bool is_utf8(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    while (*p) {
        int more = *p < 0x80 ? 0 : *p >= 0xF0 ? 3 : *p >= 0xE0 ? 2 : *p >= 0xC2 ? 1 : -1;

        if (more < 0) {
            return false;
        }
        for (p++; more > 0; more--, p++) {
            if ((*p & 0xC0) != 0x80) {
                return false;
            }
        }
    }
    return true;
}

static void set_records_code_and_sentence(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(err_set(&err, ERR_INVALID, "k%d: %s", 17, "bad"), ERR_INVALID);
    assert_int_equal(err.code, ERR_INVALID);
    assert_string_equal(err.text, "k17: bad");
}

static void first_error_wins_but_code_is_returned(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    err_set(&err, ERR_INVALID, "first");
    assert_int_equal(err_set(&err, ERR_SYSTEM, "second"), ERR_SYSTEM);
    assert_int_equal(err_set_errno(&err, ERR_SYSTEM, EDQUOT, "third"), ERR_NO_SPACE);
    assert_int_equal(err.code, ERR_INVALID);
    assert_string_equal(err.text, "first");
}

static void null_err_is_accepted_everywhere(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_BUSY, "x"), ERR_BUSY);
    assert_int_equal(err_set_errno(NULL, ERR_SYSTEM, ENOSPC, "x"), ERR_NO_SPACE);
    assert_int_equal(err_wrap(NULL, "x"), ERR_INTERNAL);
    err_clear(NULL);
}

static void set_errno_appends_reason_and_knows_full_disks(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(err_set_errno(&err, ERR_SYSTEM, EACCES, "/x"), ERR_SYSTEM);
    assert_string_equal(err.text, "/x: Permission denied");
    err_clear(&err);
    assert_int_equal(err_set_errno(&err, ERR_SYSTEM, ENOSPC, "/x"), ERR_NO_SPACE);
    assert_int_equal(err.code, ERR_NO_SPACE);
}

static void wrap_puts_context_in_front(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(err_wrap(&err, "nothing to wrap"), ERR_NONE);
    assert_string_equal(err.text, "");
    err_set(&err, ERR_TIMED_OUT, "no answer");
    assert_int_equal(err_wrap(&err, "compile %s", "k17"), ERR_TIMED_OUT);
    assert_string_equal(err.text, "compile k17: no answer");
}

static void arguments_may_alias_the_text(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    err_set(&err, ERR_INVALID, "abc");
    err_wrap(&err, "%s/%s", err.text, err.text);
    assert_string_equal(err.text, "abc/abc: abc");
    err.code = ERR_NONE; // err.text stays, to be an argument of the next call
    err_set(&err, ERR_INVALID, "<%s>", err.text);
    assert_string_equal(err.text, "<abc/abc: abc>");
}

static void long_text_is_cut_between_characters(void **state)
{
    static const char *const characters[] = {"a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};

    (void)state;
    char text[3 * ERR_TEXT_MAX];
    for (size_t c = 0; c < 4; c++) {
        for (size_t shift = 0; shift < 4; shift++) {
            size_t n = strlen(characters[c]);
            size_t len = shift;

            memset(text, 'x', shift);
            while (len + n < sizeof(text)) {
                memcpy(text + len, characters[c], n);
                len += n;
            }
            text[len] = '\0';
            struct err err = ERR_INIT;
            err_set(&err, ERR_INVALID, "%s", text);
            assert_true(is_utf8(err.text));
            assert_in_range(strlen(err.text), ERR_TEXT_MAX - 4, ERR_TEXT_MAX - 1);
            assert_memory_equal(err.text, text, strlen(err.text));
            err_wrap(&err, "context");
            assert_true(is_utf8(err.text));
            assert_in_range(strlen(err.text), ERR_TEXT_MAX - 4, ERR_TEXT_MAX - 1);
        }
    }
}

static void bytes_that_are_no_utf8_are_cut_at_the_limit(void **state)
{
    (void)state;
    char text[2 * ERR_TEXT_MAX];
    memset(text, 0x80, sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    struct err err = ERR_INIT;
    err_set(&err, ERR_INVALID, "%s", text);
    assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
}

static void text_is_one_line(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    err_set(&err, ERR_INVALID, "a\nb\r\nc");
    assert_string_equal(err.text, "a b  c");
}

static void every_code_has_name_meaning_and_exit(void **state)
{
    (void)state;
    for (int code = -1; code >= -(int)ERR_COUNT; code--) {
        assert_int_equal(err_from_name(err_name(code)), code);
        assert_string_not_equal(err_meaning(code), "");
        assert_int_not_equal(err_exit(code), EXIT_OK);
    }
    assert_string_equal(err_name(ERR_NEED_BLOB), "need-blob");
    assert_int_equal(err_exit(ERR_STOPPED), 130);
}

static void unknown_codes_and_names_are_survived(void **state)
{
    (void)state;
    assert_string_equal(err_name(0), "none");
    assert_int_equal(err_exit(0), EXIT_OK);
    assert_string_equal(err_name(1), "unknown");
    assert_string_equal(err_name(-1 - (int)ERR_COUNT), "unknown");
    assert_string_equal(err_name(INT32_MIN), "unknown");
    assert_int_equal(err_exit(-9999), EXIT_INTERNAL);
    assert_int_equal(err_from_name("no-such"), ERR_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_records_code_and_sentence),
        cmocka_unit_test(first_error_wins_but_code_is_returned),
        cmocka_unit_test(null_err_is_accepted_everywhere),
        cmocka_unit_test(set_errno_appends_reason_and_knows_full_disks),
        cmocka_unit_test(wrap_puts_context_in_front),
        cmocka_unit_test(arguments_may_alias_the_text),
        cmocka_unit_test(long_text_is_cut_between_characters),
        cmocka_unit_test(bytes_that_are_no_utf8_are_cut_at_the_limit),
        cmocka_unit_test(text_is_one_line),
        cmocka_unit_test(every_code_has_name_meaning_and_exit),
        cmocka_unit_test(unknown_codes_and_names_are_survived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
