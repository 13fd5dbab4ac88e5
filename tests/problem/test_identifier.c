#include "problem/identifier.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <string.h>

static void span_stops_at_the_first_other_byte(void **state)
{
    (void)state;
    assert_int_equal(identifier_span("a1_B c"), 4);
    assert_int_equal(identifier_span("1a"), 0);
    assert_int_equal(identifier_span(""), 0);
    assert_int_equal(identifier_span("\xc3\xa4"), 0);
}

static void ordinary_names_are_accepted(void **state)
{
    static const char *const names[] = {"M",     "alpha",   "x_2", "_x",  "MAX",
                                        "T_MAX", "integer", "t",   "INT", "kcast"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_null(identifier_refusal(names[i]));
    }
}

static void names_that_would_change_generated_c_are_refused(void **state)
{
    static const char *const names[] = {
        "int",      "while",       "restrict", "typeof",    "unix",         "linux",
        "__x",      "_Bool",       "int64_t",  "my_t",      "INT64_MAX",    "UINT8_C",
        "SIZE_MAX", "kcast_entry", "INT_MAX",  "WCHAR_MIN", "PTRDIFF_WIDTH"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_non_null(identifier_refusal(names[i]));
    }
}

static void what_is_no_identifier_is_refused(void **state)
{
    (void)state;
    assert_non_null(identifier_refusal(""));
    assert_non_null(identifier_refusal("a b"));
    assert_non_null(identifier_refusal("9"));
    assert_non_null(identifier_refusal("a("));
    char longest[IDENTIFIER_MAX + 2];
    memset(longest, 'a', sizeof longest);
    longest[IDENTIFIER_MAX + 1] = '\0';
    assert_non_null(identifier_refusal(longest));
    longest[IDENTIFIER_MAX] = '\0';
    assert_null(identifier_refusal(longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(span_stops_at_the_first_other_byte),
        cmocka_unit_test(ordinary_names_are_accepted),
        cmocka_unit_test(names_that_would_change_generated_c_are_refused),
        cmocka_unit_test(what_is_no_identifier_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
